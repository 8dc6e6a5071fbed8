package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func digest(b string) string {
	s := sha256.Sum256([]byte(b))
	return hex.EncodeToString(s[:])
}

// sample is a backup of a state and three blobs, one of them empty.
func sample(t testing.TB) []byte {
	t.Helper()
	blobs := []string{"", "the first shard", strings.Repeat("tree ", 100)}
	slices.SortFunc(blobs, func(a, b string) int { return strings.Compare(digest(a), digest(b)) })
	h := Header{Cluster: "0123456789ab", Index: 77, Epoch: 70, Created: 1, Version: "0.1.0", Protocol: 1, Numerics: 1,
		Blobs: 3, Bytes: 5 + 15 + 500}
	var b bytes.Buffer
	w, err := NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Record(State, digest("state"), 5, strings.NewReader("state")); err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		if err := w.Record(Blob, digest(blob), int64(len(blob)), strings.NewReader(blob)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The bytes of format 1 do not change.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "backup-v1.golden")
	got := sample(t)
	want, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
		t.Skipf("%s was missing and is written", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("a backup has other bytes than %s", path)
	}
	if h, err := Verify(bytes.NewReader(want), nil); err != nil || h.Index != 77 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(sample(t)), "byte by byte": iotest.OneByteReader(bytes.NewReader(sample(t))),
	} {
		a, err := NewReader(r)
		if err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for {
			record, err := a.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			b, err := io.ReadAll(record)
			if err != nil || int64(len(b)) != record.Size || digest(string(b)) != record.Digest {
				t.Fatalf("%s: record %s: %q, %v", name, record.Digest, b, err)
			}
			got = append(got, string(record.Kind))
		}
		if strings.Join(got, "") != "SBBB" {
			t.Errorf("%s: records %v", name, got)
		}
	}
}

// Every byte counts: a backup of which one is changed, and one that is cut short
// anywhere, is refused.
func TestEveryByteCounts(t *testing.T) {
	whole := sample(t)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x20
		if _, err := Verify(bytes.NewReader(b), nil); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) &&
			!errors.Is(err, ErrBroken) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := Verify(bytes.NewReader(whole[:i]), nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
	if _, err := Verify(bytes.NewReader(append(bytes.Clone(whole), 0)), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
}

// What is wrong is named.
func TestErrorsName(t *testing.T) {
	whole := sample(t)
	shard := digest("the first shard")
	flipped := bytes.Replace(whole, []byte("the first shard"), []byte("the worst shard"), 1)
	if _, err := Verify(bytes.NewReader(flipped), nil); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "blob "+shard) {
		t.Errorf("a changed blob: %v", err)
	}
	state := bytes.Replace(whole, []byte("state"), []byte("stale"), 1)
	if _, err := Verify(bytes.NewReader(state), nil); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "the state") {
		t.Errorf("a changed state: %v", err)
	}
	newer := bytes.Clone(whole)
	newer[len(magic)] = 9
	if _, err := Verify(bytes.NewReader(newer), nil); !errors.Is(err, ErrVersion) ||
		!strings.Contains(err.Error(), "format 9") {
		t.Errorf("another format: %v", err)
	}
	broken := errors.New("disk on fire")
	if _, err := Verify(io.MultiReader(bytes.NewReader(whole[:50]), iotest.ErrReader(broken)),
		nil); !errors.Is(err, broken) {
		t.Errorf("a reader's error: %v", err)
	}
}

// The writer refuses bytes that do not have their digest, and can say why it stops.
func TestWriterFails(t *testing.T) {
	for name, r := range map[string]string{"other bytes": "stale", "too few": "stat"} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{Index: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Record(State, digest("state"), 5, strings.NewReader(r)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Index: 1, Bytes: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Record(State, digest("state"), 5, strings.NewReader("state")); err != nil {
		t.Fatal(err)
	}
	w.Fail(fmt.Errorf("no blob %s", digest("x")))
	if _, err := Verify(&b, nil); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "no blob "+digest("x")) {
		t.Errorf("%v", err)
	}
}
