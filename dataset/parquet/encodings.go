package parquet

import (
	"encoding/binary"
	"math/bits"
)

// The encodings of values.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingBitPacked       = 4
	encodingDelta           = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// runs reads the integers of a hybrid of runs and of packed bits. It does not know how many there are.
type runs struct {
	b     []byte
	width int // in bits
	left  int // integers of the run, or packed integers
	value uint32
	pack  []byte // the packed integers; nil: a run
	at    int    // of the next packed integer, in bits
}

// next reads the next integers.
func (r *runs) next(dst []uint32) error {
	for len(dst) > 0 {
		if r.left == 0 {
			if err := r.begin(); err != nil {
				return err
			}
		}
		n := min(r.left, len(dst))
		if r.left -= n; r.pack == nil {
			for i := range n {
				dst[i] = r.value
			}
		} else {
			for i := range n {
				dst[i] = packed(r.pack, r.at, r.width)
				r.at += r.width
			}
		}
		dst = dst[n:]
	}
	return nil
}

// begin reads the head of the next run.
func (r *runs) begin() error {
	head, n := binary.Uvarint(r.b)
	if n <= 0 || head>>1 == 0 || head>>1 > 1<<31 {
		return errDamaged("a page has a run of a wrong length")
	}
	r.b = r.b[n:]
	count := int(head >> 1)
	if head&1 == 0 {
		size := (r.width + 7) / 8
		if size > len(r.b) {
			return errDamaged("a page ends in a run")
		}
		r.left, r.value, r.pack = count, 0, nil
		for i := range size {
			r.value |= uint32(r.b[i]) << (8 * i)
		}
		r.b = r.b[size:]
		return nil
	}
	size := min(count*r.width, len(r.b)) // the last group may be cut
	if r.width > 0 {
		if r.left = min(8*count, 8*size/r.width); r.left == 0 {
			return errDamaged("a page ends in packed integers")
		}
	} else {
		r.left = 8 * count
	}
	r.pack, r.at, r.b = r.b[:size:size], 0, r.b[size:]
	return nil
}

// packed returns the integer of width bits, at most 32, at a bit of b.
func packed(b []byte, at, width int) uint32 {
	i := at / 8
	var word uint64
	if i+8 <= len(b) {
		word = binary.LittleEndian.Uint64(b[i:])
	} else {
		for k := i; k < len(b); k++ {
			word |= uint64(b[k]) << (8 * (k - i))
		}
	}
	return uint32(word >> (at % 8) & (1<<width - 1))
}

// oldPacked reads levels of the encoding BIT_PACKED, whose first bit is the highest.
func oldPacked(b []byte, from, width int, dst []uint32) error {
	for i := range dst {
		v := uint32(0)
		for k := range width {
			at := (from+i)*width + k
			if at/8 >= len(b) {
				return errDamaged("a page ends in its levels")
			}
			v = v<<1 | uint32(b[at/8]>>(7-at%8)&1)
		}
		dst[i] = v
	}
	return nil
}

// values reads the values of a page that are not missing, in order: numbers as their bits, others as bytes.
type values interface {
	// bits reads numbers. It is called for columns of numbers that are stored as such.
	bits(dst []uint64) error
	// bytes reads texts, which are valid until the next call.
	bytes(dst [][]byte) error
}

var errEnds = errDamaged("a page has fewer values than it says")

// plain has values one after the other: of size bytes each, or with their lengths (size 0).
type plain struct {
	b    []byte
	size int
}

func (p *plain) bits(dst []uint64) error {
	if len(dst)*p.size > len(p.b) {
		return errEnds
	}
	for i := range dst {
		if p.size == 4 {
			dst[i] = uint64(binary.LittleEndian.Uint32(p.b[4*i:]))
		} else {
			dst[i] = binary.LittleEndian.Uint64(p.b[8*i:])
		}
	}
	p.b = p.b[len(dst)*p.size:]
	return nil
}

func (p *plain) bytes(dst [][]byte) error {
	for i := range dst {
		n := p.size
		if n == 0 {
			if len(p.b) < 4 {
				return errEnds
			}
			length := binary.LittleEndian.Uint32(p.b)
			if p.b = p.b[4:]; uint64(length) > uint64(len(p.b)) {
				return errEnds
			}
			n = int(length)
		}
		if n > len(p.b) {
			return errEnds
		}
		dst[i], p.b = p.b[:n:n], p.b[n:]
	}
	return nil
}

// plainBools has bools in bits.
type plainBools struct {
	b  []byte
	at int
}

func (p *plainBools) bits(dst []uint64) error {
	if p.at+len(dst) > 8*len(p.b) {
		return errEnds
	}
	for i := range dst {
		dst[i] = uint64(p.b[p.at/8] >> (p.at % 8) & 1)
		p.at++
	}
	return nil
}

func (*plainBools) bytes([][]byte) error { return errKind }

// runBools has bools in runs.
type runBools struct{ runs }

func (p *runBools) bits(dst []uint64) error {
	var all [batch]uint32
	if err := p.next(all[:len(dst)]); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = uint64(all[i])
	}
	return nil
}

func (*runBools) bytes([][]byte) error { return errKind }

var errKind = errDamaged("a page has an encoding that its values cannot have")

// split has the first bytes of all values, then the second bytes, and so on.
type split struct {
	b    []byte
	size int
	at   int
	buf  []byte
}

func newSplit(b []byte, size int) (*split, error) {
	if len(b)%size != 0 {
		return nil, errEnds
	}
	return &split{b: b, size: size}, nil
}

func (p *split) bits(dst []uint64) error {
	n := len(p.b) / p.size
	if p.at+len(dst) > n || p.size > 8 {
		return errEnds
	}
	for i := range dst {
		v := uint64(0)
		for k := range p.size {
			v |= uint64(p.b[k*n+p.at]) << (8 * k)
		}
		dst[i] = v
		p.at++
	}
	return nil
}

func (p *split) bytes(dst [][]byte) error {
	n := len(p.b) / p.size
	if p.at+len(dst) > n {
		return errEnds
	}
	p.buf = p.buf[:0]
	for range dst {
		for k := range p.size {
			p.buf = append(p.buf, p.b[k*n+p.at])
		}
		p.at++
	}
	for i := range dst {
		dst[i] = p.buf[i*p.size : (i+1)*p.size]
	}
	return nil
}

// deltas has integers as differences, in blocks of packed bits.
type deltas struct {
	b         []byte
	perBlock  int // integers of a block
	minis     int // parts of a block
	left      int // integers that were not read
	last      int64
	first     bool // the first integer is next
	least     int64
	widths    []byte // of the parts of the block that are left
	pack      []byte // the part
	width, at int
	inMini    int // integers of the part that were not read
}

// newDeltas reads the head.
func newDeltas(b []byte) (*deltas, error) {
	d := &deltas{first: true}
	var fields [4]uint64
	for i := range fields {
		v, n := binary.Uvarint(b)
		if n <= 0 || i < 3 && v > 1<<31 {
			return nil, errDamaged("a page of differences has a wrong head")
		}
		fields[i], b = v, b[n:]
	}
	d.b, d.perBlock, d.minis, d.left = b, int(fields[0]), int(fields[1]), int(fields[2])
	d.last = unzigzag(fields[3])
	if d.perBlock == 0 || d.perBlock > 1<<20 || d.minis == 0 || d.perBlock%d.minis != 0 || d.perBlock/d.minis%8 != 0 {
		return nil, errDamaged("a page of differences has blocks of %d values in %d parts", d.perBlock, d.minis)
	}
	return d, nil
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// one reads the next integer.
func (d *deltas) one() (int64, error) {
	if d.left == 0 {
		return 0, errEnds
	}
	if d.left--; d.first {
		d.first = false
		return d.last, nil
	}
	if d.inMini == 0 {
		if err := d.nextMini(); err != nil {
			return 0, err
		}
	}
	d.last += d.least + int64(packed64(d.pack, d.at, d.width))
	d.at, d.inMini = d.at+d.width, d.inMini-1
	return d.last, nil
}

// nextMini begins the next part, of the next block if needed.
func (d *deltas) nextMini() error {
	if len(d.widths) == 0 {
		v, n := binary.Uvarint(d.b)
		if n <= 0 || len(d.b)-n < d.minis {
			return errDamaged("a page of differences ends early")
		}
		d.least, d.widths, d.b = unzigzag(v), d.b[n:n+d.minis], d.b[n+d.minis:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	d.inMini, d.at = d.perBlock/d.minis, 0
	size := d.inMini / 8 * d.width
	if d.width > 64 || size > len(d.b) {
		return errDamaged("a page of differences ends early")
	}
	d.pack, d.b = d.b[:size], d.b[size:]
	return nil
}

// rest reads all integers and returns what follows them.
func (d *deltas) rest() ([]byte, error) {
	for d.left > d.inMini || d.first && d.left > 0 {
		if d.first {
			d.first = false
			d.left--
			continue
		}
		if d.left -= d.inMini; d.left > 0 {
			if err := d.nextMini(); err != nil {
				return nil, err
			}
		}
	}
	return d.b, nil
}

// packed64 returns the integer of width bits, at most 64, at a bit of b.
func packed64(b []byte, at, width int) uint64 {
	if width <= 32 {
		return uint64(packed(b, at, width))
	}
	return uint64(packed(b, at, 32)) | uint64(packed(b, at+32, width-32))<<32
}

func (d *deltas) bits(dst []uint64) error {
	for i := range dst {
		v, err := d.one()
		if err != nil {
			return err
		}
		dst[i] = uint64(v)
	}
	return nil
}

func (*deltas) bytes([][]byte) error { return errKind }

// lengths has the lengths of texts as differences, then the texts.
type lengths struct {
	of *deltas
	b  []byte
}

func newLengths(b []byte) (*lengths, error) {
	all, err := newDeltas(b)
	if err != nil {
		return nil, err
	}
	rest, err := all.rest()
	if err != nil {
		return nil, err
	}
	again, err := newDeltas(b)
	return &lengths{again, rest}, err
}

func (*lengths) bits([]uint64) error { return errKind }

func (p *lengths) bytes(dst [][]byte) error {
	for i := range dst {
		n, err := p.of.one()
		if err != nil {
			return err
		}
		if n < 0 || n > int64(len(p.b)) {
			return errEnds
		}
		dst[i], p.b = p.b[:n:n], p.b[n:]
	}
	return nil
}

// deltaBytes has texts as what they have in common with the one before, and the rest.
type deltaBytes struct {
	prefixes *deltas
	suffixes *lengths
	last     []byte
	all      []byte
	ends     []int
}

func newDeltaBytes(b []byte) (*deltaBytes, error) {
	all, err := newDeltas(b)
	if err != nil {
		return nil, err
	}
	rest, err := all.rest()
	if err != nil {
		return nil, err
	}
	suffixes, err := newLengths(rest)
	if err != nil {
		return nil, err
	}
	prefixes, err := newDeltas(b)
	return &deltaBytes{prefixes: prefixes, suffixes: suffixes}, err
}

func (*deltaBytes) bits([]uint64) error { return errKind }

func (p *deltaBytes) bytes(dst [][]byte) error {
	p.all, p.ends = p.all[:0], p.ends[:0]
	var one [1][]byte
	for range dst {
		n, err := p.prefixes.one()
		if err == nil {
			err = p.suffixes.bytes(one[:])
		}
		if err != nil {
			return err
		}
		if n < 0 || n > int64(len(p.last)) || len(one[0]) > maxText {
			return errEnds
		}
		p.last = append(p.last[:n], one[0]...)
		if len(p.last) > maxText || len(p.all)+len(p.last) > maxBatchText {
			return errTooLong
		}
		p.all = append(p.all, p.last...)
		p.ends = append(p.ends, len(p.all))
	}
	from := 0
	for i, end := range p.ends {
		dst[i], from = p.all[from:end:end], end
	}
	return nil
}

// widthOf returns the number of bits of levels up to most.
func widthOf(most int) int { return bits.Len(uint(most)) }
