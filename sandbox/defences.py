"""The judge's defences, each with what it stops, so that each can be shown to matter: without it, an attack gets in.

For the ablation of `kernelwright redteam` alone. A judgement made with any of them off says so in its flags.
"""

from __future__ import annotations

from problems.spec import Frozen


class Defences(Frozen):
    """Which defences are up. All of them, unless one is taken down to see what it is there for."""

    fresh_inputs: bool = True
    """New data in the same buffers for every call. Stops results kept by pointer, shape, object or order of calls."""
    perturbed_elements: bool = True
    """The second call on a case differs from the first in a few elements, where they lie drawn by lot. Stops results
    kept by a sparse fingerprint of the input. Off: the second call's data is new altogether."""
    poisoned_outputs: bool = True
    """Outputs hold NaN or noise before each call. Stops kernels that leave elements out, or add to what is there.
    Off: zeros."""
    inputs_unchanged: bool = True
    """Inputs are compared with the checker's own copy after each call. Stops scratch work in them."""
    exact_types: bool = True
    """Dtype and shape must be those asked for. Stops results that save themselves the last conversion. Off: converted.
    """
    finite: bool = True
    """What is not finite is wrong where the result is. Stops NaN as a wildcard. Off: it compares as no difference."""
    hidden_cases: bool = True
    """Sizes off the tile, spikes, cancelling values, drawn at judge time. Stops kernels that know the published cases.
    """
    late_seeds: bool = True
    """Seeds from the operating system after the candidate is loaded. Stops answers made in advance. Off: 1, 2, 3."""
    trusted_copy: bool = True
    """The output is copied as soon as the call is said to be done. Stops work that is done later. Off: it is read where
    it lies, a while later."""
    our_tolerance: bool = True
    """Relative error against float64 decides. Stops what a board's loose tolerance lets through. Off: the board's own
    check decides, where it runs on the case."""
    sandbox: bool = True
    """The candidate is confined. Stops reading the reference and reaching for the judge. Off: a plain process."""
    screen: bool = True
    """Constructs that have no honest use convict alone. Stops tricks that would not even show in an answer."""
    clock_agreement: bool = True
    """On a GPU: times from the guest's events must agree with the checker's own clock. Stops tampered events."""
    device_join: bool = True
    """On a GPU: the whole device is waited for before the last event. Stops work left on other streams."""
    every_timed_output: bool = True
    """On a GPU: every timed call's output is checked. Stops kernels that work in the first calls alone."""

    @property
    def off(self) -> tuple[str, ...]:
        """Names of those that are down."""
        return tuple(name for name, up in self if not up)

    def without(self, name: str) -> Defences:
        """The same with one more down; `KeyError` where there is none of that name."""
        if name not in Defences.model_fields:
            raise KeyError(name)
        return self.model_copy(update={name: False})


ALL_UP = Defences()
