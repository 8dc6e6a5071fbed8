package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// pool unpacks the pages of all columns and counts the bytes that are in memory.
type pool struct {
	unpacker
	held, most int64
}

// take changes what is held by a column from before to now bytes.
func (p *pool) take(before, now int) error {
	if p.held += int64(now) - int64(before); p.held > p.most {
		return fmt.Errorf("pages decompress to more than %d bytes, and to more than %d times the size of the file: read "+
			"fewer columns, or write the file with smaller pages: %w", freeUnpacked, maxRatio, ErrFormat)
	}
	return nil
}

// columnReader reads the values of a column in order, over all row groups.
type columnReader struct {
	file   *File
	column *Column
	asText bool
	pool   *pool
	buffer int // bytes that are read of the file at a time

	chunkReader
	page
	dictionary
	decoded

	// what conversions need
	bits [batch]uint64
	refs [batch][]byte
	ids  [batch]uint32
}

// chunkReader is where in the file a column is read.
type chunkReader struct {
	group  int // the next row group
	in     *bufio.Reader
	left   int64 // values of the chunk
	unread int64 // bytes of the chunk
	codec  int32
}

// page is the page that is being decoded.
type page struct {
	raw      []byte // as the file has it
	unpacked []byte
	held     int // bytes that the pool counts
	inPage   int // values that were not decoded
	levels   struct{ def, rep levelReader }
	values   values
	indices  *runs // of the dictionary, in the place of values
}

// dictionary has the values that pages number.
type dictionary struct {
	numbers []float64
	texts   []string
	hasDict bool
}

// decoded are the values that were decoded: n, and at were taken.
type decoded struct {
	n, at      int
	defs, reps [batch]uint32
	outNumbers []float64
	outTexts   []string
}

// levelReader reads the levels of a page.
type levelReader struct {
	runs runs
	old  []byte // BIT_PACKED
	at   int
	most int
}

func (l *levelReader) next(dst []uint32) error {
	if l.most == 0 {
		clear(dst)
		return nil
	}
	var err error
	if l.old != nil {
		err = oldPacked(l.old, l.at, widthOf(l.most), dst)
		l.at += len(dst)
	} else {
		err = l.runs.next(dst)
	}
	for _, v := range dst {
		if err == nil && int(v) > l.most {
			return errDamaged("a page has the level %d, at most %d is possible", v, l.most)
		}
	}
	return err
}

// fill decodes the next values, or returns io.EOF after the last row group.
func (r *columnReader) fill() error {
	for r.inPage == 0 {
		if r.left == 0 {
			if r.group == len(r.file.groups) {
				return io.EOF
			}
			if err := r.begin(); err != nil {
				return err
			}
			continue
		}
		if err := r.nextPage(); err != nil {
			return r.named(err)
		}
	}
	n := min(batch, r.inPage)
	if err := r.decode(n); err != nil {
		return r.named(err)
	}
	r.inPage, r.n, r.at = r.inPage-n, n, 0
	return nil
}

func (r *columnReader) named(err error) error {
	return fmt.Errorf("column %.100q, row group %d (counted from 0): %w", r.column.Name, r.group-1, err)
}

// begin opens the chunk of the next row group.
func (r *columnReader) begin() error {
	c := &r.file.groups[r.group].chunks[r.column.leaf]
	r.group++
	section := io.NewSectionReader(r.file.in, c.from, c.size)
	if r.in == nil {
		r.in = bufio.NewReaderSize(section, max(r.buffer, 1<<12))
	} else {
		r.in.Reset(section)
	}
	r.left, r.unread, r.codec, r.hasDict = c.values, c.size, c.codec, false
	return nil
}

// pageHeader is the header of a page.
type pageHeader struct {
	kind               int32 // 0: data, 1: index, 2: dictionary, 3: data of version 2
	unpacked, packed   int32
	crc                int32
	hasCRC             bool
	values             int32
	encoding           int32
	defEncoding        int32
	repEncoding        int32
	defBytes, repBytes int32
	stored             bool // values of version 2 are not compressed
}

// readHeader reads the header of the next page.
func (r *columnReader) readHeader() (h pageHeader, err error) {
	for size := 256; ; size *= 4 {
		b, failed := r.in.Peek(min(size, r.in.Size()))
		if len(b) == 0 {
			return h, errDamaged("the pages end early")
		}
		t := &thriftReader{b: b}
		h = decodePageHeader(t)
		if t.err == nil {
			_, err = r.in.Discard(t.at)
			r.unread -= int64(t.at)
			return h, err
		}
		switch {
		case failed != nil && !errors.Is(failed, io.EOF):
			return h, failed
		case failed != nil || size > maxPageHeader:
			return h, t.err
		case size >= r.in.Size(): // a long header: statistics with texts
			r.in = bufio.NewReaderSize(r.in, 4*r.in.Size())
		}
	}
}

func decodePageHeader(t *thriftReader) (h pageHeader) {
	h.kind = -1
	t.fields(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = t.int32()
		case id == 2 && kind == thriftI32:
			h.unpacked = t.int32()
		case id == 3 && kind == thriftI32:
			h.packed = t.int32()
		case id == 4 && kind == thriftI32:
			h.crc, h.hasCRC = t.int32(), true
		case (id == 5 || id == 7) && kind == thriftStruct:
			t.fields(func(id int16, kind byte) {
				if kind != thriftI32 || id > 4 {
					t.skip(kind)
					return
				}
				*[]*int32{&h.values, &h.encoding, &h.defEncoding, &h.repEncoding}[max(id, 1)-1] = t.int32()
			})
		case id == 8 && kind == thriftStruct:
			t.fields(func(id int16, kind byte) {
				switch {
				case id == 7 && kind == thriftFalse:
					h.stored = true
				case id == 1 && kind == thriftI32:
					h.values = t.int32()
				case id == 4 && kind == thriftI32:
					h.encoding = t.int32()
				case id == 5 && kind == thriftI32:
					h.defBytes = t.int32()
				case id == 6 && kind == thriftI32:
					h.repBytes = t.int32()
				default:
					t.skip(kind)
				}
			})
		default:
			t.skip(kind)
		}
	})
	return h
}

// nextPage reads the next page of data, and a dictionary before it.
func (r *columnReader) nextPage() error {
	h, err := r.readHeader()
	if err != nil {
		return err
	}
	if h.packed < 0 || h.unpacked < 0 || h.values < 0 || int64(h.packed) > r.unread || h.kind < 0 {
		return errDamaged("a page has a wrong header: %d bytes, %d in the file, and %d values", h.unpacked,
			h.packed, h.values)
	}
	if int64(h.unpacked) > max(freeUnpacked, maxRatio*int64(h.packed)) {
		return fmt.Errorf("a page decompresses to more than %d times its size and to more than %d bytes; write the file "+
			"with smaller pages: %w", maxRatio, freeUnpacked, ErrFormat)
	}
	if r.codec == codecNone && h.unpacked != h.packed && h.kind != 3 {
		return errDamaged("a page that is not compressed has %d bytes, want %d", h.packed, h.unpacked)
	}
	if cap(r.raw) < int(h.packed) {
		r.raw = make([]byte, h.packed)
	}
	r.raw = r.raw[:h.packed]
	if _, err := io.ReadFull(r.in, r.raw); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errDamaged("a page ends early")
		}
		return err
	}
	r.unread -= int64(h.packed)
	if h.hasCRC && crc32.ChecksumIEEE(r.raw) != uint32(h.crc) {
		return errDamaged("a page has a wrong checksum")
	}
	switch h.kind {
	case 0:
		return r.dataPage(&h)
	case 2:
		return r.readDictionary(&h)
	case 3:
		return r.dataPage2(&h)
	}
	return nil // an index
}

// unpackPage decompresses a page, or the part of it after the levels.
func (r *columnReader) unpackPage(src []byte, size int, stored bool) ([]byte, error) {
	codec := r.codec
	if stored {
		codec = codecNone
	}
	held := cap(r.raw)
	if codec != codecNone {
		held += max(cap(r.unpacked), size)
	}
	if err := r.pool.take(r.held, held); err != nil {
		return nil, err
	}
	r.held = held
	out, err := r.pool.unpack(codec, r.unpacked[:0], src, size)
	if err == nil && codec != codecNone {
		r.unpacked = out
	}
	return out, err
}

// readDictionary reads the values that pages of data number.
func (r *columnReader) readDictionary(h *pageHeader) error {
	if r.hasDict || h.encoding != encodingPlain && h.encoding != encodingPlainDictionary {
		return errDamaged("a dictionary has the encoding %d, or there are two", h.encoding)
	}
	b, err := r.unpackPage(r.raw, int(h.unpacked), false)
	if err != nil {
		return err
	}
	from, err := r.plainValues(b)
	if err != nil {
		return err
	}
	r.hasDict, r.numbers, r.texts = true, r.numbers[:0], r.texts[:0]
	for left := int(h.values); left > 0; {
		n := min(left, batch)
		if r.asText {
			var out [batch]string
			if err := r.convertTexts(from, out[:n]); err != nil {
				return err
			}
			r.texts = append(r.texts, out[:n]...)
		} else {
			var out [batch]float64
			if err := r.convertNumbers(from, out[:n]); err != nil {
				return err
			}
			r.numbers = append(r.numbers, out[:n]...)
		}
		left -= n
	}
	return nil
}

func (r *columnReader) plainValues(b []byte) (values, error) {
	switch r.column.physical {
	case physicalBool:
		return &plainBools{b: b}, nil
	case physicalInt32, physicalFloat:
		return &plain{b, 4}, nil
	case physicalInt64, physicalReal:
		return &plain{b, 8}, nil
	case physicalBytes:
		return &plain{b, 0}, nil
	case physicalFixed:
		return &plain{b, r.column.size}, nil
	}
	return nil, errKind
}

// dataPage begins a page of version 1, whose levels are compressed with the values.
func (r *columnReader) dataPage(h *pageHeader) error {
	b, err := r.unpackPage(r.raw, int(h.unpacked), false)
	if err != nil {
		return err
	}
	levels := func(encoding int32, most int) (l levelReader, err error) {
		if l.most = most; most == 0 {
			return l, nil
		}
		size := 0
		switch encoding {
		case encodingRLE:
			if len(b) < 4 {
				return l, errDamaged("a page ends in its levels")
			}
			n := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
			if b = b[4:]; uint64(n) > uint64(len(b)) {
				return l, errDamaged("a page ends in its levels")
			}
			size = int(n)
			l.runs = runs{b: b[:size], width: widthOf(most)}
		case encodingBitPacked:
			if size = (int(h.values)*widthOf(most) + 7) / 8; size > len(b) {
				return l, errDamaged("a page ends in its levels")
			}
			l.old = b[:size]
		default:
			return l, errDamaged("levels have the encoding %d", encoding)
		}
		b = b[size:]
		return l, nil
	}
	if r.levels.rep, err = levels(h.repEncoding, r.column.maxRep); err != nil {
		return err
	}
	if r.levels.def, err = levels(h.defEncoding, r.column.maxDef); err != nil {
		return err
	}
	return r.beginValues(h, b)
}

// dataPage2 begins a page of version 2.
func (r *columnReader) dataPage2(h *pageHeader) error {
	before := int64(h.repBytes) + int64(h.defBytes)
	if h.repBytes < 0 || h.defBytes < 0 || before > int64(len(r.raw)) || before > int64(h.unpacked) {
		return errDamaged("a page ends in its levels")
	}
	rep, def := r.raw[:h.repBytes], r.raw[h.repBytes:before]
	b, err := r.unpackPage(r.raw[before:], int(int64(h.unpacked)-before), h.stored || before == int64(len(r.raw)))
	if err != nil {
		return err
	}
	r.levels.rep = levelReader{runs: runs{b: rep, width: widthOf(r.column.maxRep)}, most: r.column.maxRep}
	r.levels.def = levelReader{runs: runs{b: def, width: widthOf(r.column.maxDef)}, most: r.column.maxDef}
	return r.beginValues(h, b)
}

// beginValues finds the decoder of the values of a page.
func (r *columnReader) beginValues(h *pageHeader, b []byte) (err error) {
	if int64(h.values) > r.left {
		return errDamaged("the pages have more values than the row group")
	}
	r.left -= int64(h.values)
	r.inPage, r.indices, r.values = int(h.values), nil, nil
	c := r.column
	number := c.physical == physicalInt32 || c.physical == physicalInt64
	switch e := h.encoding; {
	case e == encodingPlain:
		r.values, err = r.plainValues(b)
	case e == encodingDictionary || e == encodingPlainDictionary:
		if !r.hasDict {
			return errDamaged("a page needs a dictionary, and there is none")
		}
		if len(b) == 0 { // all values are missing
			b = []byte{0}
		}
		if b[0] > 32 {
			return errDamaged("a page has indices of %d bits", b[0])
		}
		r.indices = &runs{b: b[1:], width: int(b[0])}
	case e == encodingRLE && c.physical == physicalBool:
		if len(b) < 4 {
			return errEnds
		}
		r.values = &runBools{runs{b: b[4:], width: 1}}
	case e == encodingDelta && number:
		r.values, err = deferred(b, func() (values, error) { return newDeltas(b) })
	case e == encodingDeltaLength && c.physical == physicalBytes:
		r.values, err = deferred(b, func() (values, error) { return newLengths(b) })
	case e == encodingDeltaBytes && (c.physical == physicalBytes || c.physical == physicalFixed):
		r.values, err = deferred(b, func() (values, error) { return newDeltaBytes(b) })
	case e == encodingSplit && c.physical == physicalFixed:
		r.values, err = newSplit(b, c.size)
	case e == encodingSplit && (c.physical == physicalInt32 || c.physical == physicalFloat):
		r.values, err = newSplit(b, 4)
	case e == encodingSplit && (c.physical == physicalInt64 || c.physical == physicalReal):
		r.values, err = newSplit(b, 8)
	default:
		err = errDamaged("a page has the encoding %d, which its values cannot have", e)
	}
	return err
}

// deferred is begin, unless a page has no values at all.
func deferred(b []byte, begin func() (values, error)) (values, error) {
	if len(b) == 0 {
		return &plain{size: 8}, nil
	}
	return begin()
}

// decode decodes the next n values of the page.
func (r *columnReader) decode(n int) error {
	if err := r.levels.rep.next(r.reps[:n]); err != nil {
		return err
	}
	if err := r.levels.def.next(r.defs[:n]); err != nil {
		return err
	}
	there := n
	if r.column.maxDef > 0 {
		there = 0
		for _, d := range r.defs[:n] {
			if int(d) == r.column.maxDef {
				there++
			}
		}
	}
	if r.asText {
		return r.decodeTexts(n, there)
	}
	return r.decodeNumbers(n, there)
}

func (r *columnReader) decodeNumbers(n, there int) error {
	if r.outNumbers == nil {
		r.outNumbers = make([]float64, batch)
	}
	out := r.outNumbers[:n]
	if r.indices != nil {
		if err := r.indices.next(r.ids[:there]); err != nil {
			return err
		}
		for i, id := range r.ids[:there] {
			if uint64(id) >= uint64(len(r.numbers)) {
				return errDamaged("a page has the value %d of a dictionary with %d", id, len(r.numbers))
			}
			out[i] = r.numbers[id]
		}
	} else if err := r.convertNumbers(r.values, out[:there]); err != nil {
		return err
	}
	if there < n { // from the last on, since values move to higher places
		from := there
		for i := n - 1; i >= 0; i-- {
			if int(r.defs[i]) < r.column.maxDef {
				out[i] = math.NaN()
				continue
			}
			from--
			out[i] = out[from]
		}
	}
	return nil
}

func (r *columnReader) decodeTexts(n, there int) error {
	if r.outTexts == nil {
		r.outTexts = make([]string, batch)
	}
	out := r.outTexts[:n]
	if r.indices != nil {
		if err := r.indices.next(r.ids[:there]); err != nil {
			return err
		}
		for i, id := range r.ids[:there] {
			if uint64(id) >= uint64(len(r.texts)) {
				return errDamaged("a page has the value %d of a dictionary with %d", id, len(r.texts))
			}
			out[i] = r.texts[id]
		}
	} else if err := r.convertTexts(r.values, out[:there]); err != nil {
		return err
	}
	if there < n {
		from := there
		for i := n - 1; i >= 0; i-- {
			if int(r.defs[i]) < r.column.maxDef {
				out[i] = ""
				continue
			}
			from--
			out[i] = out[from]
		}
	}
	return nil
}
