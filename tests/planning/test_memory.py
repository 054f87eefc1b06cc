"""Offsets in the arena."""

from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.memory import ALIGNMENT, Demand, allocate

demands = st.builds(
    lambda nbytes, first, length: Demand(nbytes, first, first + length),
    st.integers(1, 5000),
    st.integers(-1, 12),
    st.integers(0, 8),
)


@given(st.lists(demands, max_size=25))
def test_what_lives_at_the_same_time_never_overlaps(wanted):
    offsets, arena = allocate(wanted)
    for i, a in enumerate(wanted):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + a.nbytes <= arena
        for j, b in enumerate(wanted[:i]):
            if a.first <= b.last and b.first <= a.last:
                assert offsets[i] + a.nbytes <= offsets[j] or offsets[j] + b.nbytes <= offsets[i]


@given(st.lists(demands, max_size=25))
def test_the_arena_is_no_larger_than_everything_side_by_side(wanted):
    _, arena = allocate(wanted)
    assert arena <= sum(-(-demand.nbytes // ALIGNMENT) * ALIGNMENT for demand in wanted)


def test_a_chain_of_layers_needs_its_two_largest_neighbours():
    sizes = [100, 800, 640, 240, 16]
    chain = [Demand(size, step - 1, step) for step, size in enumerate(sizes)]
    assert allocate(chain)[1] == 800 + 640


def test_nothing_needs_nothing():
    assert allocate([]) == ([], 0)
