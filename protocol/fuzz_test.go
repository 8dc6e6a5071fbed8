package protocol

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
)

// What a decoder may allocate for n bytes: JSON's values are larger than their
// text ({} is a whole ShardRef).
const (
	perByte = 64
	atLeast = 64 << 10
)

// fuzz feeds a decoder bytes. What it refuses wraps ErrMessage; what it takes is
// encoded again to the same bytes where the message has one encoding, and to
// bytes that mean the same otherwise; and its memory follows the input's size.
func fuzz(f *testing.F, name string) {
	var c codec
	for _, have := range codecs() {
		if have.name == name || strings.HasPrefix(have.name, name+"/") {
			c = have
			f.Add(have.sample.Append(nil))
			f.Add(have.empty().Append(nil))
		}
	}
	f.Add([]byte{Version, byte(c.kind)})
	f.Add(append([]byte{Version, byte(c.kind)}, bytes.Repeat([]byte{0xff}, 60)...))
	f.Add(append([]byte{Version, byte(c.kind)}, `{"shards":[{},{},{}],"job":null,"refused":{"":""}}`...))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := c.empty()
		var err error
		if n := allocated(func() { err = m.Decode(b) }); n > perByte*uint64(len(b))+atLeast {
			t.Fatalf("%d bytes were allocated for %d", n, len(b))
		}
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again := m.Append(nil)
		if c.binary && !bytes.Equal(again, b) {
			t.Fatalf("%x is encoded again as %x", b, again)
		}
		other := c.empty()
		if err := other.Decode(again); err != nil {
			t.Fatalf("what was decoded cannot be decoded again: %v", err)
		}
		if twice := other.Append(nil); !bytes.Equal(again, twice) {
			t.Fatalf("%q is encoded as %q, and that as %q", b, again, twice)
		}
	})
}

func FuzzHeartbeat(f *testing.F)          { fuzz(f, "Heartbeat") }
func FuzzLead(f *testing.F)               { fuzz(f, "Lead") }
func FuzzSetup(f *testing.F)              { fuzz(f, "Setup") }
func FuzzForget(f *testing.F)             { fuzz(f, "Forget") }
func FuzzHold(f *testing.F)               { fuzz(f, "Hold") }
func FuzzReplicate(f *testing.F)          { fuzz(f, "Replicate") }
func FuzzProbe(f *testing.F)              { fuzz(f, "Probe") }
func FuzzChunk(f *testing.F)              { fuzz(f, "Chunk") }
func FuzzBundle(f *testing.F)             { fuzz(f, "Bundle") }
func FuzzReply(f *testing.F)              { fuzz(f, "Reply") }
func FuzzValue(f *testing.F)              { fuzz(f, "Value") }
func FuzzRun(f *testing.F)                { fuzz(f, "Run") }
func FuzzPartial(f *testing.F)            { fuzz(f, "Partial") }
func FuzzResult(f *testing.F)             { fuzz(f, "Result") }
func FuzzNeed(f *testing.F)               { fuzz(f, "Need") }
func FuzzFail(f *testing.F)               { fuzz(f, "Fail") }
func FuzzFragment(f *testing.F)           { fuzz(f, "Fragment") }
func FuzzBlobGet(f *testing.F)            { fuzz(f, "BlobGet") }
func FuzzBlobData(f *testing.F)           { fuzz(f, "BlobData") }
func FuzzCheckpoint(f *testing.F)         { fuzz(f, "Checkpoint") }
func FuzzProgress(f *testing.F)           { fuzz(f, "Progress") }
func FuzzCommitEntry(f *testing.F)        { fuzz(f, "entry/Commit") }
func FuzzLeadEntry(f *testing.F)          { fuzz(f, "entry/Lead") }
func FuzzMemberEntry(f *testing.F)        { fuzz(f, "entry/Member") }
func FuzzDatasetPutEntry(f *testing.F)    { fuzz(f, "entry/DatasetPut") }
func FuzzDatasetDeleteEntry(f *testing.F) { fuzz(f, "entry/DatasetDelete") }
func FuzzSubmitEntry(f *testing.F)        { fuzz(f, "entry/Submit") }
func FuzzJobStateEntry(f *testing.F)      { fuzz(f, "entry/JobState") }
func FuzzResultEntry(f *testing.F)        { fuzz(f, "entry/Result") }
func FuzzFinishEntry(f *testing.F)        { fuzz(f, "entry/Finish") }
func FuzzCancelEntry(f *testing.F)        { fuzz(f, "entry/Cancel") }
func FuzzCondemnEntry(f *testing.F)       { fuzz(f, "entry/Condemn") }
func FuzzPauseEntry(f *testing.F)         { fuzz(f, "entry/Pause") }
func FuzzResumeEntry(f *testing.F)        { fuzz(f, "entry/Resume") }
func FuzzSuspectEntry(f *testing.F)       { fuzz(f, "entry/Suspect") }
func FuzzTrustEntry(f *testing.F)         { fuzz(f, "entry/Trust") }
func FuzzMemberRemoveEntry(f *testing.F)  { fuzz(f, "entry/MemberRemove") }
func FuzzJobsDeleteEntry(f *testing.F)    { fuzz(f, "entry/JobsDelete") }
func FuzzExperimentEntry(f *testing.F)    { fuzz(f, "entry/Experiment") }
func FuzzRequestEntry(f *testing.F)       { fuzz(f, "entry/Request") }
func FuzzRecordEntry(f *testing.F)        { fuzz(f, "entry/Record") }
func FuzzRevokeEntry(f *testing.F)        { fuzz(f, "entry/Revoke") }
func FuzzWithholdEntry(f *testing.F)      { fuzz(f, "entry/Withhold") }
func FuzzModelDeleteEntry(f *testing.F)   { fuzz(f, "entry/ModelDelete") }
func FuzzTokenPutEntry(f *testing.F)      { fuzz(f, "entry/TokenPut") }
func FuzzTokenRevokeEntry(f *testing.F)   { fuzz(f, "entry/TokenRevoke") }

// FuzzResume: the payload of a sub-job, which has no header.
func FuzzResume(f *testing.F) {
	f.Add((&Resume{Rounds: 5, State: []byte{1}}).Append(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Resume
		if err := m.Decode(b); err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("error %v", err)
			}
		} else if again := m.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x is encoded again as %x", b, again)
		}
	})
}

// FuzzPeekStamp: whatever comes on a results subject is peeked at first.
func FuzzPeekStamp(f *testing.F) {
	for _, c := range codecs() {
		f.Add(c.sample.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, worker, err := PeekStamp(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) || s != (Stamp{}) && len(b) > 26 {
				t.Fatalf("stamp %v, error %v", s, err)
			}
			return
		}
		var p Partial
		p.Partial = new(round.Partial)
		if p.Decode(b) == nil && (p.Stamp != s || p.Worker != string(worker)) {
			t.Fatalf("peeked %v of %q, decoded %v of %q", s, worker, p.Stamp, p.Worker)
		}
	})
}

// FuzzJoiner feeds a Joiner a stream of pieces, cut anywhere: it never fails on
// what Split made, and a message that comes out is one of the right length.
func FuzzJoiner(f *testing.F) {
	f.Add([]byte("a first message"), []byte("and a second"), byte(3), uint64(5))
	f.Fuzz(func(t *testing.T, first, second []byte, size byte, order uint64) {
		var j Joiner
		var streams [2][][]byte
		messages := [2][]byte{append([]byte{Version, 4}, first...), append([]byte{Version, 4}, second...)}
		for s, m := range messages {
			Split([][]byte{m}, fragmentHead+1+int(size), uint64(s), 1, func(p []byte) error {
				streams[s] = append(streams[s], bytes.Clone(p))
				return nil
			})
		}
		for len(streams[0])+len(streams[1]) > 0 {
			s := int(order & 1)
			order = order>>1 | order<<63
			if len(streams[s]) == 0 {
				s = 1 - s
			}
			got, err := j.Add(streams[s][0])
			if streams[s] = streams[s][1:]; err != nil || (got != nil) != (len(streams[s]) == 0) || got != nil &&
				!bytes.Equal(got, messages[s]) {
				t.Fatalf("sender %d: %q, error %v", s, got, err)
			}
		}
	})
}
