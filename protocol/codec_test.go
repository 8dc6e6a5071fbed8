package protocol

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden bytes anew: only with a new Version")

const goldenFile = "testdata/golden.txt"

// golden writes the line of a message: hex, or where the body is JSON its text.
func golden(c *codec) string {
	b := c.sample.Append(nil)
	if c.binary {
		return c.name + " " + hex.EncodeToString(b)
	}
	return fmt.Sprintf("%s %x %s", c.name, b[:2], strconv.Quote(string(b[2:])))
}

// TestGoldenBytes pins the encoding of every message and entry: a change here is
// a change of Version.
func TestGoldenBytes(t *testing.T) {
	var got []string
	for _, c := range codecs() {
		got = append(got, golden(&c))
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range goldenLines(t) {
		if i >= len(got) || got[i] != want {
			t.Errorf("line %d\nwant %s\n got %s", i+1, want, got[min(i, len(got)-1)])
		}
	}
	if lines := goldenLines(t); len(lines) != len(got) {
		t.Errorf("%d golden lines for %d messages", len(lines), len(got))
	}
}

func goldenLines(t *testing.T) (lines []string) {
	t.Helper()
	b, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines
}

// raw are bytes without their length.
type raw []byte

// box is the slow twin of Append: it writes fields as PROTOCOL.md draws them.
func box(fields ...any) []byte {
	b := []byte{4} // Version
	for _, f := range fields {
		switch v := f.(type) {
		case Kind:
			b = append(b, byte(v))
		case byte:
			b = append(b, v)
		case uint16:
			b = append(b, byte(v), byte(v>>8))
		case uint32:
			for i := range 4 {
				b = append(b, byte(v>>(8*i)))
			}
		case uint64:
			for i := range 8 {
				b = append(b, byte(v>>(8*i)))
			}
		case float64:
			b = append(b, box(math.Float64bits(v))[1:]...)
		case float32:
			b = append(b, box(math.Float32bits(v))[1:]...)
		case string:
			b = append(append(b, box(uint32(len(v)))[1:]...), v...)
		case raw:
			b = append(b, v...)
		case []byte:
			b = append(append(b, box(uint64(len(v)))[1:]...), v...)
		default:
			panic(fmt.Sprintf("%T", f))
		}
	}
	return b
}

// TestLayout holds the samples against the boxes of PROTOCOL.md, field by field.
func TestLayout(t *testing.T) {
	u32, u64 := func(v uint32) uint32 { return v }, func(v uint64) uint64 { return v }
	epoch, job, round := u64(0x0102030405060708), u64(9), u64(1<<33)
	flag := func(b byte) byte { return b }
	want := map[string][]byte{
		"Value": box(KindValue, u64(12), u64(40), uint16(0xfffe), u64(412), []byte{1, 2, 3}),
		"Run": box(KindRun, epoch, job, round, "leaf update", byte(3), byte(0), byte(0), byte(1), flag(0), u32(16), u64(100),
			u64(200), u64(413),
			u32(2), u32(3), u32(5), u32(1869), u32(64), byte(2), uint16(1), u64(412), uint16(2), u64(7), u32(3), u32(4),
			u32(5), u32(15)),
		"Run/collect": box(KindRun, epoch, job, round, "", byte(4), byte(1), byte(1), byte(7), flag(1), u32(10), u64(0),
			u64(0), u64(0),
			u32(0), u32(0), u32(0), u32(0), u32(0), byte(0), u32(2), u32(0), []byte{}, u32(9), []byte{0xaa, 0xbb}),
		"Partial": box(KindPartial, epoch, job, round, "w1", byte(2), u32(3), u64(1500000), u32(2),
			u64(16), 1.0, -2.5, u64(4), float32(0.5), u64(8), u32(0xfffffffd), u32(4), u64(8), u32(7), u32(1868), u64(16),
			float32(1), float32(2), float32(3), float32(4)),
		"Result":          box(KindResult, epoch, job, round, "w1", u32(3), u64(99), sampleText, u64(4096)),
		"Need":            box(KindNeed, epoch, job, round, "w1", flag(1), byte(1), uint16(1), u64(412)),
		"Fail":            box(KindFail, epoch, job, round, "w1", u32(3), byte(1), "row 7 is no row"),
		"Fail/non-finite": box(KindFail, epoch, job, round, "w1", u32(3), byte(2+4), "value 7 is NaN"),
		"Probe":           box(KindProbe, u64(12)),
		"Chunk": box(KindChunk, u64(12), u64(40), uint16(0xff00), u64(1), u32(2), u32(50), sampleText, flag(1),
			[]byte{1, 2, 3}),
		"Chunk/named": box(KindChunk, u64(12), u64(40), uint16(0xff00), u64(1), u32(49), u32(50), sampleText,
			flag(0), []byte{}),
		"Bundle": box(KindBundle, u32(2), []byte{Version, byte(KindProbe), 12, 0, 0, 0, 0, 0, 0, 0},
			[]byte{Version, byte(KindRun), 7}),
		"Fragment":            box(KindFragment, u64(77), u64(5), u64(3), u64(9), []byte{1, 2}),
		"BlobGet":             box(KindBlobGet, sampleText, u64(1<<18), u32(BlobChunk)),
		"BlobData":            box(KindBlobData, flag(1), u64(1<<19), []byte("bytes")),
		"BlobData/unreadable": box(KindBlobData, flag(2), u64(0), []byte{}),
		"Checkpoint":          box(KindCheckpoint, epoch, job, round, "w1", u32(3), u64(500), []byte{1, 2, 3}, []byte{7}),
		"Progress": box(KindProgress, epoch, job, round, "w1", u32(3), u64(501), u64(400), u64(25600),
			u64(2000), u64(2500), 0.5, u64(51), u64(40), u64(2560)),
		"entry/Request": box(Kind(EntryRequest), u64(1700000000), "ana", "submit", "0123456789abcdef", "", "10.0.0.1:4711",
			"POST /v1/jobs/n/cancel", "job 40 (n)", "",
			[]byte("\x04\x0a"+`{"job":40,"time":1700000000}`)),
		"entry/Commit": box(Kind(EntryCommit), u64(12), u64(40), u64(900), u64(4), u64(8), "", []byte(`{"step":900}`),
			[]byte{6, 5}, []byte{9, 8, 7}),
	}
	for _, c := range codecs() {
		if !c.binary {
			continue
		}
		if got := c.sample.Append(nil); !bytes.Equal(got, want[c.name]) {
			t.Errorf("%s\nwant %x\n got %x", c.name, want[c.name], got)
		}
	}
}

// TestRoundTrip: what is encoded is decoded again, behind whatever bytes it was
// appended to, and into memory that held another message.
func TestRoundTrip(t *testing.T) {
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			used := c.empty()
			rapid.Check(t, func(t *rapid.T) {
				m := c.draw(t)
				before := []byte("before")
				b := m.Append(before)
				if !bytes.HasPrefix(b, before) {
					t.Fatal("Append changed what was there")
				}
				b = b[len(before):]
				for _, into := range []message{c.empty(), used} {
					if err := into.Decode(b); err != nil {
						t.Fatal(err)
					}
					if diff := same(m, into); diff != "" {
						t.Fatalf("after decoding (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// TestPayloadsOfGatherRoundsOnly: a Run of a reduce round leaves payloads of an earlier use out.
func TestPayloadsOfGatherRoundsOnly(t *testing.T) {
	m := Run{Kind: "step", Of: 4, Tasks: []uint32{1, 3}}
	want := m.Append(nil)
	for _, used := range [][][]byte{{}, {{1}}} {
		m.Payload = used
		if got := m.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("with %d payloads\nwant %x\n got %x", len(used), want, got)
		}
	}
}

// TestDamage: a message that is cut short, goes on, or is of another kind or
// version is refused, never half taken.
func TestDamage(t *testing.T) {
	for _, c := range codecs() {
		b := c.sample.Append(nil)
		refuse := func(what string, b []byte) {
			t.Helper()
			if err := c.empty().Decode(b); !errors.Is(err, ErrMessage) {
				t.Errorf("%s, %s: error %v", c.name, what, err)
			}
		}
		for n := range len(b) {
			refuse(fmt.Sprintf("the first %d of %d bytes", n, len(b)), b[:n:n])
		}
		refuse("a byte too many", append(bytes.Clone(b), 0))
		refuse("another version", append([]byte{Version + 1}, b[1:]...))
		if c.binary || !strings.HasPrefix(c.name, "entry/") { // those are told apart before they are decoded
			refuse("another kind", append([]byte{Version, 99}, b[2:]...))
		}
	}
}

// TestVersionIsNamed: a process of another version is told both.
func TestVersionIsNamed(t *testing.T) {
	_, err := KindOf([]byte{9, 1})
	if err == nil || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "version 4") {
		t.Errorf("error %v does not name both versions", err)
	}
}
