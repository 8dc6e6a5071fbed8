package round

import "fmt"

// Shape is the shape of a reduce round's partials.
type Shape struct {
	F64 int // float64 values
	F32 int // float32 values
	// Rows and Width describe row-sparse float32 values: at most Rows rows of
	// Width values each. Rows 0: none.
	Rows, Width int
}

// Rows are rows of values that are computed when they are needed.
type Rows interface {
	// Compute sets dst to whole rows, the first of which is from. None of their values is
	// -0.
	Compute(dst []float32, from int)
}

// Partial is one node of a reduction: sums, never averages.
type Partial struct {
	F64 []float64
	F32 []float32
	// Index lists the rows that are present, ascending; Values holds
	// len(Index)×Width values. An absent row is +0.
	Index  []uint32
	Values []float32
	Width  int
	// Later, if Run may leave it, computes the rows of Index; Values is empty then.
	Later Rows
	// Before is Later of a round before: Run may use its memory again.
	Before Rows
	// Lent is true if the numbers stand in memory that was lent, such as a message's, which
	// nobody keeps for other rounds. Message is that memory, if it is to be given back.
	Lent    bool
	Message []byte
}

// Reset shapes p for s and zeroes it, reusing its memory.
func (p *Partial) Reset(s Shape) {
	p.F64 = zeroed(p.F64, s.F64)
	p.F32 = zeroed(p.F32, s.F32)
	p.Index = p.Index[:0]
	p.Values = p.Values[:0]
	p.Width = s.Width
	if p.Later != nil {
		p.Before, p.Later = p.Later, nil
	}
}

func zeroed[T float32 | float64](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	v = v[:n]
	clear(v)
	return v
}

// Check returns an error that says how p differs from shape s, or nil.
func (p *Partial) Check(s Shape) error {
	rows := len(p.Index)
	if p.Later != nil {
		rows = 0
	}
	if len(p.F64) != s.F64 || len(p.F32) != s.F32 || p.Width != s.Width ||
		len(p.Values) != rows*s.Width || len(p.Index) > s.Rows {
		return fmt.Errorf("round: the partial result has %d float64, %d float32 and %d rows of %d values, want %+v",
			len(p.F64), len(p.F32), len(p.Index), p.Width, s)
	}
	for i, row := range p.Index {
		if int(row) >= s.Rows || i > 0 && p.Index[i-1] >= row {
			return fmt.Errorf("round: the rows of a partial result are not ascending, or not below %d", s.Rows)
		}
	}
	return nil
}

// Result is what Trainer.Fold receives.
type Result struct {
	Sum *Partial // of a reduce round: valid during Fold only
	// Gathered has the bytes of each task of a gather round, in task order; nil for
	// tasks of Round.Has. Fold may set elements to nil to free their memory.
	Gathered [][]byte
	// Digests has the SHA-256, in hex, of each of Gathered, if the executor knows it; otherwise
	// it is nil, or an element is empty.
	Digests []string
	// Load, if set, reads the bytes of one task of a round with Round.Apart, which Gathered
	// does not have then; none: the task was not run, and is to have no result.
	Load func(task int) ([]byte, error)
	// Took is how long each of them was computed, in nanoseconds, as workers say; 0: not known.
	// nil: of none. No result depends on it.
	Took []uint64
}
