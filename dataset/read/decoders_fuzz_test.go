package read

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// inflated bounds what reading a compressed file of n bytes may allocate: flate
// makes a thousand bytes of one at most, and readers keep a few for each.
func inflated(n int) int { return 32*1100*n + 4<<20 }

// FuzzNames: a file of names is read, or refused, in proportion to its size.
func FuzzNames(f *testing.F) {
	f.Add([]byte(`{"features": ["p"], "labels": ["q", "r"], "rows": ["one", "two"]}`))
	f.Add([]byte(`{"features": [null, 1]}`))
	f.Add([]byte(`{} {}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n *Names
		var err error
		allocs.AtMost(t, 64*len(b)+64<<10, "names", func() { n, err = decodeNames("n.json", bytes.NewReader(b)) })
		if err != nil {
			if !strings.HasPrefix(err.Error(), "n.json") {
				t.Fatalf("error %v does not name the file", err)
			}
			return
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeNames("n.json", bytes.NewReader(again))
		if err != nil || !slices.Equal(back.Rows, n.Rows) || !slices.Equal(back.Features, n.Features) ||
			!slices.Equal(back.Labels, n.Labels) {
			t.Fatalf("names change on the way: %s, error %v", again, err)
		}
	})
}

// FuzzGzipText: a compressed text is read to its end, or refused as damaged.
func FuzzGzipText(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.csv.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, "a,label_c,label_d\n1,1,0\n2,0,1\n")
	z.Close()
	f.Add(b.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var src dataset.Source
		var err error
		allocs.AtMost(t, inflated(len(b)), "a compressed text", func() {
			if src, err = Open(path, OpenOptions{}); err == nil {
				err = src.Scan(func(*dataset.Row) error { return nil })
			}
		})
		if err != nil && !strings.Contains(err.Error(), "a.csv.gz") {
			t.Fatalf("error %v does not name the file", err)
		}
	})
}

// endless yields a pattern for ever.
type endless struct {
	pattern string
	at      int
	read    int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.pattern[e.at]
		e.at = (e.at + 1) % len(e.pattern)
	}
	e.read += len(p)
	return len(p), nil
}

// TestEndlessRecords: a record of a text that never ends is refused after its
// bound, not read until memory is full.
func TestEndlessRecords(t *testing.T) {
	const limit = 1 << 20
	for name, in := range map[string]*endless{"a quote": {pattern: `"a`}, "blank lines": {pattern: "\n"}} {
		r := newCSVReader(bufio.NewReader(in))
		if r.limit != maxLine {
			t.Errorf("%s: a record of %d bytes is allowed", name, r.limit)
		}
		r.limit = limit
		_, err := r.Read()
		if !errors.Is(err, dataset.ErrFormat) && !strings.Contains(err.Error(), "quote") {
			t.Errorf("%s: error %v", name, err)
		}
		if in.read > 2*limit {
			t.Errorf("%s: %d bytes were read", name, in.read)
		}
	}
}
