package runner

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQueue: each cell is handed out once, no group's second cell before every group's first,
// and then those first that take longest.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 6).Draw(t, "cells")
		q, now := NewQueue(cells), time.Unix(0, 0)
		handed, begun := make([]int, len(cells)), 0
		for _, n := range cells {
			if n > 0 {
				begun++
			}
		}
		for n := 0; ; n++ {
			of, number, ok := q.Next(now)
			if !ok {
				break
			}
			if handed[of]++; handed[of] > 1 && n < begun {
				t.Fatalf("the second cell of group %d comes as number %d", of, n)
			}
			if q.Running() != 1 {
				t.Fatalf("%d cells run", q.Running())
			}
			now = now.Add(time.Duration(of+1) * time.Second)
			if s := q.End(number, now); s != float64(of+1) {
				t.Fatalf("a cell of group %d took %v s", of, s)
			}
			if n < begun-1 {
				continue
			}
			left, longest := 0.0, -1
			for i, c := range cells {
				left += float64(c-handed[i]) * float64(i+1)
				if c > handed[i] {
					longest = i
				}
			}
			if got, known := q.Left(now, 1); !known || got != left {
				t.Fatalf("%v s are left, want %v", got, left)
			}
			if longest > 0 && n >= begun && of < longest {
				t.Fatalf("group %d came before %d", of, longest)
			}
		}
		for i, c := range cells {
			if handed[i] != c {
				t.Fatalf("%d of %d cells of group %d", handed[i], c, i)
			}
		}
	})
}

// TestQueueLeft: what runs counts with what is left of it, and the longest cell bounds the time.
func TestQueueLeft(t *testing.T) {
	q, now := NewQueue([]int{3}), time.Unix(0, 0)
	if _, known := q.Left(now, 2); known {
		t.Error("an estimate before any cell has ended")
	}
	_, first, _ := q.Next(now)
	now = now.Add(10 * time.Second)
	q.End(first, now)
	q.Next(now)
	if left, _ := q.Left(now.Add(4*time.Second), 2); left != 10 {
		t.Errorf("%v s left: 6 of one cell and 10 of another on two lanes", left)
	}
	if left, _ := q.Left(now.Add(4*time.Second), 1); left != 16 {
		t.Errorf("%v s left on one lane", left)
	}
}
