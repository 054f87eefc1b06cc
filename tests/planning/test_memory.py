"""Offsets in the arena."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.memory import ALIGNMENT, Block, Demand, allocate

sizes = st.integers(1, 5000)
steps = st.integers(-1, 12)
plain = st.builds(
    lambda nbytes, first, length: Demand((Block(nbytes, first, first + length),)), sizes, steps, st.integers(0, 8)
)
in_place = st.builds(
    lambda a, b, first, middle, last: Demand(
        (Block(a, first, first + middle), Block(b, first + middle, first + middle + last))
    ),
    *(sizes, sizes, steps, st.integers(1, 4), st.integers(0, 4)),
)
demands = st.one_of(plain, in_place)


@given(st.lists(demands, max_size=25))
def test_what_lives_at_the_same_time_never_overlaps(wanted):
    offsets, arena = allocate(wanted)
    for i, a in enumerate(wanted):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + a.nbytes <= arena
        for j, b in enumerate(wanted[:i]):
            for x, y in product(a.blocks, b.blocks):
                if x.first <= y.last and y.first <= x.last:
                    assert offsets[i] + x.nbytes <= offsets[j] or offsets[j] + y.nbytes <= offsets[i]


@given(st.lists(demands, max_size=25))
def test_the_arena_is_no_larger_than_everything_side_by_side(wanted):
    _, arena = allocate(wanted)
    assert arena <= sum(-(-demand.nbytes // ALIGNMENT) * ALIGNMENT for demand in wanted)


def test_a_chain_of_layers_needs_its_two_largest_neighbours():
    sizes = [100, 800, 640, 240, 16]
    chain = [Demand((Block(size, step - 1, step),)) for step, size in enumerate(sizes)]
    assert allocate(chain)[1] == 800 + 640


def test_what_is_computed_in_place_frees_what_it_does_not_need():
    # A float input is quantised in place at step 0; at step 1 three quarters of its bytes are free again.
    floats_and_int8 = Demand((Block(4000, -1, 0), Block(1000, 0, 1)))
    result = Demand((Block(800, 1, 2),))
    offsets, arena = allocate([floats_and_int8, result])
    assert arena == 4000
    assert offsets == [0, 1000]


def test_nothing_needs_nothing():
    assert allocate([]) == ([], 0)
