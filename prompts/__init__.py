"""What a model is told: templates, parts with their sources, and one typed render function per template."""
