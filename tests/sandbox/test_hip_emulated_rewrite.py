"""HIP source as C++ for the emulation."""

import pytest

from sandbox.guest.hip.emulated.rewrite import Unsupported, rewrite, split


def test_a_launch_keeps_its_lines_and_arguments() -> None:
    launch = "  k<T, (1 << 3)>\n    <<<dim3(1, 2),\n       64, 0, s>>>(a, g(b, c), NULL);\n"
    source = f'#define S "<<<"\nvoid f() {{\n{launch}  h();\n}}\n'
    made = rewrite(source)
    assert made.splitlines()[6 - 1].strip() == "h();"
    assert "::kw::Configuration{dim3(1, 2), 64, 0, s}" in made
    assert "k<T, (1 << 3)>(kw_each...); }, a, g(b, c), nullptr)" in made
    assert made.startswith('#define S "<<<"')


def test_a_kernel_whose_template_arguments_are_all_told_is_known_by_its_address() -> None:
    source = "__global__ __launch_bounds__(64) void k(int* p) {}\ntemplate <int N> __global__ void t() {}\n"
    made = rewrite(source + "void f() { k<<<1, 64>>>(p); t<3><<<1, 64>>>(); hipLaunchKernelGGL(k, 1, 64, 0, 0, p); }")
    assert made.count("(const void*)&k,") == 2 and "(const void*)&t<3>," in made
    deduced = rewrite(
        "template <class T, int N = 2> __global__ void d(T x) {}\nvoid f() { d<<<1, 64>>>(1); d<int><<<1, 64>>>(1); }"
    )
    assert '::kw::start("d", nullptr' in deduced and "(const void*)&d<int>," in deduced


def test_shared_variables() -> None:
    source = "__shared__ __align__(16) float a[4][N + 1], b;\nextern __shared__ int4 tile[];\nf(__shared__ int* p);"
    source += "__attribute__((amdgpu_waves_per_eu(2, 2)))(__attribute__((address_space(3))) int*)b"
    made = rewrite(source)
    assert "typedef float a_kw[4][N + 1];" in made
    assert "b_kw& b = *(b_kw*)kw_shared(&b_kw_site);" in made
    assert "int4* const tile = (int4*)kw_dynamic_shared();" in made
    assert "f(__shared__ int* p);( int*)b" in made


def test_assembly_that_only_waits_goes_and_any_other_is_refused_when_it_runs() -> None:
    made = rewrite(
        'asm volatile("s_waitcnt vmcnt(0)\\n" ::: "memory"); asm volatile("v_add_f32 %0, %1, %2" : "=v"(x));'
    )
    assert made == '(__kw_wait()); kw_refuse("inline assembly: v_add_f32 %0, %1, %2");'


def test_assembly_that_orders_memory_is_a_fence_of_its_scope() -> None:
    made = rewrite('asm volatile("s_waitcnt vmcnt(0)\\n"\n"buffer_wbl2 sc0 sc1\\n s_sleep %0" :: "n"(4)); asm("");')
    assert "(__kw_wait(), __kw_fence(::kw::release, ::kw::of_system), __builtin_amdgcn_s_sleep(1))" in made
    assert made.endswith("((void)0);") and made.count("\n") == 1


def test_what_cannot_be_read_is_named_with_its_line() -> None:
    with pytest.raises(Unsupported, match="line 2"):
        rewrite("\nk<<<1, 2>>>;")


def test_splits_at_commas_that_no_bracket_encloses() -> None:
    assert split("a<b, c>(1, 2), x < y, {1, 2}") == ["a<b, c>(1, 2)", " x < y", " {1, 2}"]
