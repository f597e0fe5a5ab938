/* The constants that AMD's device library (ocml, ockl) is specialised by, as ROCm's clang links them for gfx9 in wave64.
   Names and meanings: ROCm device-libs, doc/OCML.md "Controls". KW_ISA is 9402 for gfx942 and 9500 for gfx950. */
#define KW_CONSTANT(type, name, value) \
  __attribute__((visibility("hidden"))) const __attribute__((address_space(4))) type name = value;
KW_CONSTANT(unsigned char, __oclc_finite_only_opt, 0)
KW_CONSTANT(unsigned char, __oclc_unsafe_math_opt, 0)
KW_CONSTANT(unsigned char, __oclc_daz_opt, 0)
KW_CONSTANT(unsigned char, __oclc_correctly_rounded_sqrt32, 1)
KW_CONSTANT(unsigned char, __oclc_wavefrontsize64, 1)
KW_CONSTANT(int, __oclc_ISA_version, KW_ISA)
KW_CONSTANT(int, __oclc_ABI_version, 500)
