package parquet

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// inBytes reports whether values are read as bytes.
func (c *Column) inBytes() bool { return c.physical == physicalBytes || c.physical == physicalFixed }

// convertNumbers reads values as numbers.
func (r *columnReader) convertNumbers(from values, dst []float64) error {
	c := r.column
	switch {
	case c.Kind == Nothing:
		if len(dst) > 0 {
			return errDamaged("a column of missing values has a value")
		}
		return nil
	case c.inBytes():
		refs := r.refs[:len(dst)]
		if err := from.bytes(refs); err != nil {
			return err
		}
		for i, b := range refs {
			switch {
			case c.physical == physicalFixed && len(b) != c.size:
				return errDamaged("a value has %d bytes, want %d", len(b), c.size)
			case c.Kind == Half:
				dst[i] = half(uint16(b[0]) | uint16(b[1])<<8)
			case len(b) > 64:
				return errDamaged("a decimal has %d bytes", len(b))
			default:
				dst[i] = decimal(bigOf(b), c.scale)
			}
		}
		return nil
	}
	all := r.bits[:len(dst)]
	if err := from.bits(all); err != nil {
		return err
	}
	for i, v := range all {
		switch c.Kind {
		case Bool:
			dst[i] = float64(v & 1)
		case Float:
			dst[i] = float64(math.Float32frombits(uint32(v)))
		case Double:
			dst[i] = math.Float64frombits(v)
		case Uint:
			dst[i] = float64(c.unsigned(v))
		case Decimal:
			dst[i] = decimalOf(c.signed(v), c.scale)
		default:
			dst[i] = float64(c.signed(v))
		}
	}
	return nil
}

func (c *Column) signed(v uint64) int64 {
	if c.physical == physicalInt32 {
		return int64(int32(v))
	}
	return int64(v)
}

func (c *Column) unsigned(v uint64) uint64 {
	if c.physical == physicalInt32 {
		return uint64(uint32(v))
	}
	return v
}

// convertTexts reads values as texts, as a CSV file of the table would have them.
func (r *columnReader) convertTexts(from values, dst []string) error {
	c := r.column
	if c.inBytes() && c.IsNumber() || !c.inBytes() && (c.Kind == Float || c.Kind == Double || c.Kind == Decimal) ||
		c.Kind == Nothing {
		var all [batch]float64
		if err := r.convertNumbers(from, all[:len(dst)]); err != nil {
			return err
		}
		for i, v := range all[:len(dst)] {
			dst[i] = r.numberText(v)
		}
		return nil
	}
	if c.inBytes() {
		refs := r.refs[:len(dst)]
		if err := from.bytes(refs); err != nil {
			return err
		}
		all := 0
		for i, b := range refs {
			if all += len(b); len(b) > maxText || all > maxBatchText {
				return errTooLong
			}
			if c.physical == physicalFixed && len(b) != c.size {
				return errDamaged("a value has %d bytes, want %d", len(b), c.size)
			}
			if dst[i] = string(b); c.Kind == UUID {
				dst[i] = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
			}
		}
		return nil
	}
	all := r.bits[:len(dst)]
	if err := from.bits(all); err != nil {
		return err
	}
	for i, v := range all {
		switch {
		case c.Kind == Bool && v&1 != 0: // as pandas writes bools in CSV
			dst[i] = "True"
		case c.Kind == Bool:
			dst[i] = "False"
		case c.Kind == Uint:
			dst[i] = strconv.FormatUint(c.unsigned(v), 10)
		default:
			dst[i] = strconv.FormatInt(c.signed(v), 10)
		}
	}
	return nil
}

// numberText writes a number as the shortest text that is read as the same.
func (r *columnReader) numberText(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	bits := 64
	if r.column.Kind == Float || r.column.Kind == Half {
		bits = 32
	}
	if math.Abs(v) < 1<<53 && float64(int64(v)) == v {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// half reads a number of 16 bits.
func half(b uint16) float64 {
	sign, exponent, fraction := 1.0, int(b>>10&31), float64(b&1023)
	if b>>15 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// powers are the powers of 10 that are exact.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimalOf returns v / 10^scale, rounded once as a CSV file's text of it is.
func decimalOf(v int64, scale int) float64 {
	if exact := int64(1) << 53; scale < len(powers) && v > -exact && v < exact {
		return float64(v) / powers[scale]
	}
	return decimal(big.NewInt(v), scale)
}

// decimal is decimalOf for any integer.
func decimal(v *big.Int, scale int) float64 {
	text := new(big.Int).Abs(v).String()
	if n := scale + 1 - len(text); n > 0 {
		text = strings.Repeat("0", n) + text
	}
	text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinity, which no dataset takes
	if v.Sign() < 0 {
		return -f
	}
	return f
}

// bigOf reads an integer in two's complement, the highest byte first.
func bigOf(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}
