package ldlldm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// entry is a row that may be one of the first centres.
type entry struct {
	order uint64 // a random number of the row: the least ones are drawn
	row   uint32 // its number in the dataset
	label []float32
}

func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.row, b.row))
}

// orderOf returns the random number of a row.
func orderOf(key num.Key, row uint32) uint64 {
	v := num.Philox(key, [4]uint32{row})
	return uint64(v[0])<<32 | uint64(v[1])
}

// draw lists the rows of a unit with the least random numbers, n at most, in their order, but for rows of weight 0. The
// rows that are drawn of all units' lists do not depend on how rows are shared among units.
func draw(n int, key num.Key, u *round.Task, d *dataset.Data) []entry {
	var drawn []entry
	for _, ref := range u.Rows(d) {
		rows := d.Shard(int(ref.Shard))
		if rows.WeightOf(int(ref.Pos)) == 0 {
			continue
		}
		row := rows.Row[ref.Pos]
		e := entry{orderOf(key, row), row, rows.Label(int(ref.Pos))}
		drawn = insert(drawn, e, n)
	}
	return drawn
}

// insert puts an entry into a sorted list of at most n.
func insert(list []entry, e entry, n int) []entry {
	if len(list) == n && compare(e, list[n-1]) > 0 {
		return list
	}
	at, _ := slices.BinarySearchFunc(list, e, compare)
	list = slices.Insert(list, at, e)
	return list[:min(n, len(list))]
}

// entryBytes is the size of an encoded entry: random number, row, label distribution.
func entryBytes(labels int) int { return 8 + 4 + 4*labels }

// appendEntries encodes entries one behind the other.
func appendEntries(dst []byte, list []entry) []byte {
	for _, e := range list {
		dst = binary.LittleEndian.AppendUint64(dst, e.order)
		dst = binary.LittleEndian.AppendUint32(dst, e.row)
		for _, x := range e.label {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	}
	return dst
}

// errEntries is wrapped by every error about the encoded entries of a unit.
var errEntries = errors.New("the samples drawn by a task are damaged")

// parseEntries decodes the entries of a unit, at most n.
func parseEntries(b []byte, n, labels int) ([]entry, error) {
	size := entryBytes(labels)
	if len(b)%size != 0 || len(b) > n*size {
		return nil, fmt.Errorf("%w: %d bytes are not a list of at most %d samples with %d labels", errEntries,
			len(b), n, labels)
	}
	list := make([]entry, 0, len(b)/size)
	for ; len(b) > 0; b = b[size:] {
		e := entry{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), make([]float32, labels)}
		for c := range e.label {
			e.label[c] = math.Float32frombits(binary.LittleEndian.Uint32(b[12+4*c:]))
			if !(e.label[c] >= 0 && e.label[c] <= 2) {
				return nil, fmt.Errorf("%w: sample %d has the probability %v", errEntries, e.row, e.label[c])
			}
		}
		if len(list) > 0 && compare(list[len(list)-1], e) >= 0 {
			return nil, fmt.Errorf("%w: sample %d is not in the right order", errEntries, e.row)
		}
		list = append(list, e)
	}
	return list, nil
}
