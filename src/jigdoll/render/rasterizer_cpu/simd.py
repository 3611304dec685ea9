"""Eight floats at a time inside numba: a vector type whose operations become single LLVM vector instructions.

Leaving vectorisation to LLVM's loop vectoriser makes the speed depend on its mood, and the order of every sum on the
machine's vector width. With an explicit type the hot loops compile to what is written, to the same order of sums on
every machine; where eight lanes are too many for the processor, LLVM splits them.

numba's cache of a kernel does not notice edits of this file: touch the kernels' file as well.
"""

import operator
from typing import no_type_check

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 8

_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)


class Float8Type(types.Type):
    """Eight float32 in one register."""


class Mask8Type(types.Type):
    """Eight truth values, the answer of a comparison."""


float8 = Float8Type(name="float8")
mask8 = Mask8Type(name="mask8")


@register_model(Float8Type)
class _Float8Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _FLOATS)


@register_model(Mask8Type)
class _Mask8Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _BITS)


def _spread(builder, scalar, vector_type=_FLOATS):
    """The same scalar in all lanes."""
    undefined = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(_INTS, [0] * LANES)
    return builder.shuffle_vector(first, undefined, lanes)


def _constant(value):
    return ir.Constant(_FLOATS, [float(value)] * LANES)


def _muladd(builder, a, b, c):
    """a * b + c, fused where the processor can."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fmuladd.v{LANES}f32"
    )
    return builder.call(function, [a, b, c])


def _address(context, builder, array_type, array, index):
    """Where eight lanes of a contiguous array start."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _FLOATS.as_pointer())


@intrinsic
@no_type_check
def splat(typingctx, x):
    """The same number in all lanes."""

    def codegen(context, builder, signature, args):
        return _spread(builder, context.cast(builder, args[0], signature.args[0], types.float32))

    return float8(x), codegen


@intrinsic
@no_type_check
def lanes(typingctx):
    """0, 1, 2, ... 7."""

    def codegen(context, builder, signature, args):
        return ir.Constant(_FLOATS, [float(lane) for lane in range(LANES)])

    return float8(), codegen


@intrinsic
@no_type_check
def load(typingctx, array, index):
    """Eight consecutive numbers of a contiguous array."""

    def codegen(context, builder, signature, args):
        return builder.load(_address(context, builder, signature.args[0], *args), align=4)

    return float8(array, types.intp), codegen


@intrinsic
@no_type_check
def store(typingctx, array, index, value):
    """Write eight consecutive numbers of a contiguous array."""

    def codegen(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1]), align=4)
        return context.get_dummy_value()

    return types.none(array, types.intp, float8), codegen


@intrinsic
@no_type_check
def fma(typingctx, a, b, c):
    """a * b + c."""

    def codegen(context, builder, signature, args):
        return _muladd(builder, *args)

    return float8(float8, float8, float8), codegen


@intrinsic
@no_type_check
def fnma(typingctx, a, b, c):
    """c - a * b."""

    def codegen(context, builder, signature, args):
        return _muladd(builder, builder.fneg(args[0]), args[1], args[2])

    return float8(float8, float8, float8), codegen


def _selecting(comparison, doc):
    @intrinsic
    @no_type_check
    def apply(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return builder.select(builder.fcmp_ordered(comparison, args[0], args[1]), args[0], args[1])

        return float8(float8, float8), codegen

    apply.__doc__ = doc
    return apply


smaller = _selecting("<", "The smaller number in each lane; if the first is NaN, the second.")
larger = _selecting(">", "The larger number in each lane; if the first is NaN, the second.")


def _builtin(name, doc):
    @intrinsic
    @no_type_check
    def apply(typingctx, x):
        def codegen(context, builder, signature, args):
            kind = ir.FunctionType(_FLOATS, [_FLOATS])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32"), args)

        return float8(float8), codegen

    apply.__doc__ = doc
    return apply


square_root = _builtin("sqrt", "The square root of each lane.")
ceiling = _builtin("ceil", "The next integer above, in each lane.")


@intrinsic
@no_type_check
def where(typingctx, mask, yes, no):
    """Lane by lane one or the other; the one that is not taken may be anything, even NaN."""

    def codegen(context, builder, signature, args):
        return builder.select(*args)

    return float8(mask8, float8, float8), codegen


@intrinsic
@no_type_check
def both(typingctx, a, b):
    """Lanes that are true in both masks."""

    def codegen(context, builder, signature, args):
        return builder.and_(*args)

    return mask8(mask8, mask8), codegen


@intrinsic
@no_type_check
def bits(typingctx, mask):
    """The mask as an integer, lane 0 in the lowest bit."""

    def codegen(context, builder, signature, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), ir.IntType(64))

    return types.int64(mask8), codegen


@intrinsic
@no_type_check
def any_in_both(typingctx, a, b):
    """Whether some lane is true in both masks."""

    def codegen(context, builder, signature, args):
        word = builder.bitcast(builder.and_(*args), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", word, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask8, mask8), codegen


def _fold(builder, a, b, width):
    """Add neighbours `width` lanes apart: those of a land where bit `width` of the lane is 0, of b where it is 1."""
    low = [lane & ~width if not lane & width else LANES + (lane & ~width) for lane in range(LANES)]
    high = [lane | width if not lane & width else LANES + (lane | width) for lane in range(LANES)]
    first = builder.shuffle_vector(a, b, ir.Constant(_INTS, low))
    second = builder.shuffle_vector(a, b, ir.Constant(_INTS, high))
    return builder.fadd(first, second)


@intrinsic
@no_type_check
def totals(typingctx, a, b, c, d, e, f, g, h):
    """The sums of the lanes of eight vectors, as one vector; always in the same order."""

    def codegen(context, builder, signature, args):
        vectors = list(args)
        for width in (1, 2, 4):
            vectors = [_fold(builder, *pair, width) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
        return vectors[0]

    return float8(*[float8] * LANES), codegen


@intrinsic
@no_type_check
def store_pixels(typingctx, array, index, red, green, blue, alpha):
    """Write eight RGBA pixels, 32 numbers, from four planes."""

    def codegen(context, builder, signature, args):
        array, index, *planes = args
        side_by_side = ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), list(range(2 * LANES)))
        left, right = (builder.shuffle_vector(*planes[i : i + 2], side_by_side) for i in (0, 2))
        for quarter in range(4):
            lanes = [c * LANES + 2 * quarter + pixel for pixel in range(2) for c in range(4)]
            row = builder.shuffle_vector(left, right, ir.Constant(_INTS, lanes))
            place = builder.add(index, ir.Constant(index.type, quarter * LANES))
            builder.store(row, _address(context, builder, signature.args[0], array, place), align=4)
        return context.get_dummy_value()

    return types.none(array, types.intp, float8, float8, float8, float8), codegen


@intrinsic
@no_type_check
def load_channel(typingctx, array, index, channel):
    """One channel of eight RGBA pixels; the channel is a constant."""
    if not isinstance(channel, types.IntegerLiteral):
        return None
    number = channel.literal_value

    def codegen(context, builder, signature, args):
        quarters = [
            builder.load(
                _address(
                    context, builder, signature.args[0], args[0], builder.add(args[1], ir.Constant(args[1].type, 8 * k))
                ),
                align=4,
            )
            for k in range(4)
        ]
        pair = ir.Constant(ir.VectorType(ir.IntType(32), 4), [number, number + 4, LANES + number, LANES + number + 4])
        low, high = (builder.shuffle_vector(quarters[i], quarters[i + 1], pair) for i in (0, 2))
        return builder.shuffle_vector(low, high, ir.Constant(_INTS, list(range(LANES))))

    return float8(array, types.intp, channel), codegen


def _prefetcher(write, doc):
    @intrinsic
    @no_type_check
    def apply(typingctx, array, index):
        def codegen(context, builder, signature, args):
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            kind = ir.FunctionType(ir.VoidType(), [pointer.type] + [ir.IntType(32)] * 3)
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(function, [pointer] + [ir.Constant(ir.IntType(32), flag) for flag in (write, 3, 1)])
            return context.get_dummy_value()

        return types.none(array, types.intp), codegen

    apply.__doc__ = doc
    return apply


prefetch = _prefetcher(0, "Ask for the cache line of an element that will be read soon.")
prefetch_to_write = _prefetcher(1, "Ask for the cache line of an element that will be written soon.")


# 2^f on -1/2..1/2, minimax in relative error: 1.6e-7 with the coefficients rounded to float32.
_EXP2 = (1.0, 6.931469671e-1, 2.402211972e-1, 5.550713274e-2, 9.675541385e-3, 1.327647205e-3)
# Adding 1.5 * 2^23 rounds a float to an integer and leaves that integer in the lowest bits.
_ROUNDER = 12582912.0


@intrinsic
@no_type_check
def exp2(typingctx, x):
    """2^x to 3e-7 for -126 < x < 127; anything outside gives garbage, but never traps."""

    def codegen(context, builder, signature, args):
        shifted = builder.fadd(args[0], _constant(_ROUNDER))
        f = builder.fsub(args[0], builder.fsub(shifted, _constant(_ROUNDER)))
        c = [_constant(coefficient) for coefficient in _EXP2]
        # Pairs first (Estrin): a shorter chain of dependent operations than Horner's.
        f2 = builder.fmul(f, f)
        top = _muladd(builder, _muladd(builder, c[5], f, c[4]), f2, _muladd(builder, c[3], f, c[2]))
        power = _muladd(builder, top, f2, _muladd(builder, c[1], f, c[0]))
        exponent = builder.shl(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [23] * LANES))
        return builder.bitcast(builder.add(builder.bitcast(power, _INTS), exponent), _FLOATS)

    return float8(float8), codegen


def _binary(op, instruction, result):
    """Teach numba one operator on two vectors."""

    @intrinsic
    @no_type_check
    def apply(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return instruction(builder, *args)

        return result(float8, float8), codegen

    @overload(op, inline="never")
    @no_type_check
    def typed(a, b):
        if a is float8 and b is float8:
            return lambda a, b: apply(a, b)  # noqa: PLW0108 - numba wants a function of these names
        return None


_binary(operator.add, lambda builder, a, b: builder.fadd(a, b), float8)
_binary(operator.sub, lambda builder, a, b: builder.fsub(a, b), float8)
_binary(operator.mul, lambda builder, a, b: builder.fmul(a, b), float8)
_binary(operator.truediv, lambda builder, a, b: builder.fdiv(a, b), float8)
_binary(operator.lt, lambda builder, a, b: builder.fcmp_ordered("<", a, b), mask8)
_binary(operator.le, lambda builder, a, b: builder.fcmp_ordered("<=", a, b), mask8)
_binary(operator.ge, lambda builder, a, b: builder.fcmp_ordered(">=", a, b), mask8)


@intrinsic
@no_type_check
def take_ticket(typingctx, counter):
    """Count up an int64 array's first number by one, atomically, and return what it was: how threads share out jobs."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), codegen
