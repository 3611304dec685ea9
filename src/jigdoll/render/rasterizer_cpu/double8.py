"""Eight doubles at a time inside numba, for the projection of eight Gaussians at once.

A vector mixes freely with plain numbers, so that the same formulas read like scalar code. LLVM splits the eight lanes
into as many registers as the processor needs.

numba's cache of a kernel does not notice edits of this file: touch the kernels' file as well.
"""

import math
import operator
from typing import no_type_check

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from jigdoll.render.rasterizer_cpu.simd import LANES, mask8

_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_LONGS = ir.VectorType(ir.IntType(64), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_FUSE = ("contract",)


class Double8Type(types.Type):
    """Eight float64."""


double8 = Double8Type(name="double8")


@register_model(Double8Type)
class _Double8Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _DOUBLES)


def _constant(value):
    return ir.Constant(_DOUBLES, [float(value)] * LANES)


def _longs(value):
    return ir.Constant(_LONGS, [value] * LANES)


def _widen(context, builder, value, kind):
    """A vector as it is, a number in all lanes."""
    if kind is double8:
        return value
    scalar = context.cast(builder, value, kind, types.float64)
    undefined = ir.Constant(_DOUBLES, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_INTS, [0] * LANES))


def _call(builder, name, *args):
    """One of LLVM's own functions on vectors."""
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64"), args)


def _lane_address(context, builder, array_type, args, lane):
    """The address of array[min(first + lane, last) * stride + offset]."""
    array, first, last, stride, offset = args
    data = context.make_array(array_type)(context, builder, array).data
    row = builder.add(first, ir.Constant(first.type, lane))
    row = builder.select(builder.icmp_signed("<", row, last), row, last)
    return builder.gep(data, [builder.add(builder.mul(row, stride), offset)])


_PLACE = (types.intp, types.intp, types.intp, types.intp)


@intrinsic
@no_type_check
def gather(typingctx, array, first, last, stride, offset):
    """Lane k is array[min(first + k, last) * stride + offset]: the tail of an array repeats its last element."""

    def codegen(context, builder, signature, args):
        vector = ir.Constant(_FLOATS, ir.Undefined)
        for lane in range(LANES):
            value = builder.load(_lane_address(context, builder, signature.args[0], args, lane))
            vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
        return builder.fpext(vector, _DOUBLES)

    return double8(array, *_PLACE), codegen


@intrinsic
@no_type_check
def scatter(typingctx, array, first, last, stride, offset, value):
    """Write lane k to array[min(first + k, last) * stride + offset], in the order of the lanes."""

    def codegen(context, builder, signature, args):
        *place, value = args
        element = context.get_value_type(signature.args[0].dtype)
        if isinstance(element, ir.IntType):
            narrow = builder.fptosi(value, ir.VectorType(element, LANES))
        else:
            narrow = builder.fptrunc(value, ir.VectorType(element, LANES))
        for lane in range(LANES):
            number = builder.extract_element(narrow, ir.Constant(ir.IntType(32), lane))
            builder.store(number, _lane_address(context, builder, signature.args[0], place, lane))
        return context.get_dummy_value()

    return types.none(array, *_PLACE, double8), codegen


def _interleave(builder, rows, width):
    """One step of a transposition: swap blocks of `width` lanes between rows `width` apart."""
    out = list(rows)
    for i in range(LANES):
        if i & width:
            continue
        a, b = rows[i], rows[i | width]
        low = [lane if not lane & width else LANES + (lane & ~width) for lane in range(LANES)]
        high = [lane | width if not lane & width else LANES + lane for lane in range(LANES)]
        out[i] = builder.shuffle_vector(a, b, ir.Constant(_INTS, low))
        out[i | width] = builder.shuffle_vector(a, b, ir.Constant(_INTS, high))
    return out


@intrinsic
@no_type_check
def scatter_rows(typingctx, array, first, last, stride, offset, a, b, c, d, e, f, g, h):
    """Write lane k of the eight vectors side by side from array[min(first + k, last) * stride + offset] on."""

    def codegen(context, builder, signature, args):
        place, vectors = args[:5], [builder.fptrunc(v, _FLOATS) for v in args[5:]]
        for width in (1, 2, 4):
            vectors = _interleave(builder, vectors, width)
        for lane, row in enumerate(vectors):
            address = _lane_address(context, builder, signature.args[0], place, lane)
            builder.store(row, builder.bitcast(address, _FLOATS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(array, *_PLACE, *[double8] * LANES), codegen


@intrinsic
@no_type_check
def pick(typingctx, mask, yes, no):
    """Lane by lane one or the other."""

    def codegen(context, builder, signature, args):
        sides = (_widen(context, builder, v, k) for v, k in zip(args[1:], signature.args[1:], strict=True))
        return builder.select(args[0], *sides)

    return double8(mask8, yes, no), codegen


def _unary(instructions, doc):
    @intrinsic
    @no_type_check
    def apply(typingctx, x):
        def codegen(context, builder, signature, args):
            return instructions(builder, args[0])

        return double8(double8), codegen

    apply.__doc__ = doc
    return apply


root = _unary(lambda builder, x: _call(builder, "sqrt", x), "The square root.")
round_down = _unary(lambda builder, x: _call(builder, "floor", x), "The next integer below.")
round_up = _unary(lambda builder, x: _call(builder, "ceil", x), "The next integer above.")


def _polynomial(builder, coefficients, x):
    """Horner's rule, the highest coefficient first."""
    value = _constant(coefficients[0])
    for coefficient in coefficients[1:]:
        value = _call(builder, "fmuladd", value, x, _constant(coefficient))
    return value


def _exp2(builder, x):
    """2^x: the integer part goes to the exponent's bits, the rest, within 1/2, through Taylor's series."""
    rounder = _constant(1.5 * 2**52)
    shifted = builder.fadd(x, rounder)
    fraction = builder.fsub(x, builder.fsub(shifted, rounder))
    series = [math.log(2) ** k / math.factorial(k) for k in range(10, -1, -1)]
    power = builder.bitcast(_polynomial(builder, series, fraction), _LONGS)
    exponent = builder.shl(builder.bitcast(shifted, _LONGS), _longs(52))
    return builder.bitcast(builder.add(power, exponent), _DOUBLES)


def _log2(builder, x):
    """log2(x) for normal x > 0: exponent plus log2 of a mantissa m near 1, as a series in (m - 1) / (m + 1)."""
    bits = builder.bitcast(x, _LONGS)
    # Counting exponents from sqrt(1/2) keeps m between that and sqrt(2).
    offset = builder.sub(bits, _longs(0x3FE6A09E667F3BCD))
    exponent = builder.ashr(offset, _longs(52))
    mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, _longs(52))), _DOUBLES)
    one = _constant(1.0)
    s = builder.fdiv(builder.fsub(mantissa, one), builder.fadd(mantissa, one))
    series = [2 / math.log(2) / k for k in range(13, 0, -2)]
    log = builder.fmul(s, _polynomial(builder, series, builder.fmul(s, s)))
    return builder.fadd(log, builder.sitofp(builder.trunc(exponent, _INTS), _DOUBLES))


exp2_wide = _unary(_exp2, "2^x to 1e-12, for -1000 < x < 1000.")
log2_wide = _unary(_log2, "log2(x) to 1e-11, for normal x > 0.")


def _binary(op, instruction, result, doc=None):
    """Teach numba one function of two arguments, at least one of them a vector."""

    @intrinsic
    @no_type_check
    def apply(typingctx, a, b):
        def codegen(context, builder, signature, args):
            sides = (_widen(context, builder, v, k) for v, k in zip(args, signature.args, strict=True))
            return instruction(builder, *sides)

        return result(a, b), codegen

    if op is None:
        apply.__doc__ = doc
        return apply

    @overload(op)
    @no_type_check
    def typed(a, b):
        numbers = (types.Float, types.Integer)
        if (a is double8 and (b is double8 or isinstance(b, numbers))) or (b is double8 and isinstance(a, numbers)):
            return lambda a, b: apply(a, b)  # noqa: PLW0108 - numba wants a function of these names
        return None

    return None


_binary(operator.add, lambda builder, a, b: builder.fadd(a, b, flags=_FUSE), double8)
_binary(operator.sub, lambda builder, a, b: builder.fsub(a, b, flags=_FUSE), double8)
_binary(operator.mul, lambda builder, a, b: builder.fmul(a, b, flags=_FUSE), double8)
_binary(operator.truediv, lambda builder, a, b: builder.fdiv(a, b), double8)
_binary(operator.lt, lambda builder, a, b: builder.fcmp_ordered("<", a, b), mask8)
_binary(operator.le, lambda builder, a, b: builder.fcmp_ordered("<=", a, b), mask8)
lower = _binary(
    None,
    lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y),
    double8,
    "The smaller number; NaN gives the second.",
)
upper = _binary(
    None, lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y), double8, "The larger number; NaN gives the second."
)
