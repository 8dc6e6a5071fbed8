package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// record is what was read of a backup.
type record struct {
	kind   Kind
	digest string
	data   []byte
}

// readAll reads a whole backup.
func readAll(b []byte) (h Header, records []record, err error) {
	a, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return h, nil, err
	}
	for {
		r, err := a.Next()
		if err == io.EOF {
			return a.Header, records, nil
		}
		if err != nil {
			return h, nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return h, nil, err
		}
		records = append(records, record{r.Kind, r.Digest, data})
	}
}

// writeAll writes a backup of these records.
func writeAll(t testing.TB, h Header, records []record) []byte {
	t.Helper()
	var b bytes.Buffer
	a, err := NewWriter(&b, h)
	for _, r := range records {
		if err == nil {
			err = a.Record(r.kind, r.digest, int64(len(r.data)), bytes.NewReader(r.data))
		}
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func recordOf(k Kind, data string) record {
	sum := sha256.Sum256([]byte(data))
	return record{k, hex.EncodeToString(sum[:]), []byte(data)}
}

// resum gives a backup's bytes the sum that its end should have, so that what is
// behind the sums is reached as well.
func resum(b []byte) []byte {
	if len(b) < sha256.Size {
		return b
	}
	body := b[:len(b)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// FuzzReader: bytes are a backup that is written again to the same records, or are
// refused, and cost memory by their size alone.
func FuzzReader(f *testing.F) {
	h := Header{Cluster: "c", Index: 7, Version: "0", Protocol: 1, Numerics: 1, Blobs: 1, Bytes: 9}
	good := writeAll(f, h, []record{recordOf(State, "state"), recordOf(Blob, "blob")})
	f.Add(good)
	f.Add(good[:len(good)/2])
	claim := bytes.Clone(good)
	for i := range 5 {
		claim[len(claim)-sha256.Size-17-4-sha256.Size-8+i] = 0xff // the blob's size
	}
	f.Add(claim)
	f.Add([]byte(magic + "\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resum(b)} {
			var h Header
			var records []record
			var err error
			allocs.AtMost(t, 64*len(b)+1<<20, "a backup", func() { h, records, err = readAll(b) })
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrBroken) {
					t.Fatalf("error %v", err)
				}
				continue
			}
			back, again, err := readAll(writeAll(t, h, records))
			if err != nil || back != h || len(again) != len(records) {
				t.Fatalf("a backup of %d records is read again as %d, error %v", len(records), len(again), err)
			}
		}
	})
}
