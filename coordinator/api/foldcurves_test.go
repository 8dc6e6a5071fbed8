package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// shelf has the results of folds, and counts how often each is read.
type shelf struct {
	result []byte
	away   string // the digest of the one that is not at hand
	reads  map[string]int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	r := curve.NewRecorder(curve.JobPoints, nil)
	for step := range uint64(300) {
		r.Observe(round.Progress{Step: step, Loss: 0.5}, curve.Unknown)
	}
	r.End()
	b, err := (&pipeline.Outcome{Curve: r.Curve()}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{result: b, reads: make(map[string]int)}
}

func (s *shelf) read(digest string) ([]byte, error) {
	if digest == s.away {
		return nil, errors.New("it is not at hand")
	}
	s.reads[digest]++
	return s.result, nil
}

// partsOf makes recorded results of a job of folds.
func partsOf(job string, folds int, bytes uint64) (parts []state.Part) {
	for i := range folds {
		parts = append(parts, state.Part{Unit: uint32(i), Digest: sha256.Sum256(fmt.Append(nil, job, i)), Bytes: bytes})
	}
	return parts
}

// TestResultsAreReadOnce, no more of them for a request than are allowed; the next request
// reads on.
func TestResultsAreReadOnce(t *testing.T) {
	s, f := newShelf(t), new(foldCurves)
	parts := partsOf("job", 10, maxFoldReads/4)
	parts[9].Bytes, s.away = maxFoldPart+1, parts[1].Digest.String()
	for request, want := range []int{4, 8, 8, 8} {
		got := f.of(t.Context(), parts, s.read)
		if len(got) != want || len(s.reads) != want {
			t.Errorf("request %d: %d curves, %d results were read; want %d", request, len(got), len(s.reads), want)
		}
		for digest, points := range got {
			if n := len(points); n < 10 || n > curve.FoldPoints {
				t.Errorf("%s has %d points", digest, n)
			}
		}
	}
	if got := f.of(t.Context(), parts[9:], s.read); len(got) > 0 {
		t.Error("a result that is too large was read")
	}
	s.away = ""
	if got := f.of(t.Context(), parts, s.read); len(got) != 9 {
		t.Errorf("%d curves once all are at hand", len(got))
	}
	for digest, n := range s.reads {
		if n != 1 {
			t.Errorf("%s was read %d times", digest, n)
		}
	}
	s.result = []byte("no result")
	other := partsOf("other", 1, 9)
	for range 2 {
		f.of(t.Context(), other, s.read)
	}
	if n := s.reads[other[0].Digest.String()]; n != 1 {
		t.Errorf("what is no result was read %d times", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.of(gone, partsOf("third", 3, 9), s.read); len(got) > 0 {
		t.Errorf("%d results were read for one who is gone", len(got))
	}
}

// TestKeptCurvesAreBounded: those of the job that is asked about stay.
func TestKeptCurvesAreBounded(t *testing.T) {
	s, f := newShelf(t), new(foldCurves)
	s.result = nil
	for job := range 5 {
		parts := partsOf(fmt.Sprint("job", job, "-"), maxFolds/2-1, 9)
		for range 2 {
			f.of(t.Context(), parts, s.read)
		}
		if len(f.points) > maxFolds {
			t.Fatalf("%d curves are kept, at most %d are allowed", len(f.points), maxFolds)
		}
	}
	for digest, n := range s.reads {
		if n != 1 {
			t.Fatalf("%s was read %d times", digest, n)
		}
	}
	f.of(t.Context(), partsOf("large", maxFolds+9, 9), s.read)
	if len(f.points) != maxFolds {
		t.Errorf("%d curves of a large job are kept, not %d", len(f.points), maxFolds)
	}
}
