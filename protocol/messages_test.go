package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// codec is a message or entry as the tests below see all of them.
type codec struct {
	name   string
	kind   Kind
	binary bool // has exactly one encoding
	// sample is a message with every field set; draw draws any that is valid.
	sample message
	draw   func(*rapid.T) message
	// empty returns a message to decode into.
	empty func() message
}

type message interface {
	Append([]byte) []byte
	Decode([]byte) error
}

// entry makes a message of a log entry with a JSON body.
type entry[E any] struct {
	kind EntryKind
	body E
}

func (e *entry[E]) Append(dst []byte) []byte { return append(dst, EncodeEntry(e.kind, &e.body)...) }
func (e *entry[E]) Decode(b []byte) error    { return DecodeEntry(b, &e.body) }

var (
	sampleStamp = Stamp{Epoch: 0x0102030405060708, Job: 9, Round: 1 << 33}
	sampleText  = strings.Repeat("0123456789abcdef", 4)
	sampleJob   = &round.Job{
		Algorithm: "ldlf", Numerics: 1, Seed: 7, Dataset: sampleText, Folds: 10, Params: json.RawMessage(`{"trees":5}`),
		Split: dataset.Split{Seed: 7, Folds: 10, Fold: 3, Assigned: sampleText, ValidationFraction: 0.1, ValidationMin: 20},
	}
	sampleCells = &round.Job{
		Algorithm: "cells", Numerics: 1, Seed: 7, Dataset: sampleText, Split: dataset.Split{Seed: 7, Folds: 10},
		Params: json.RawMessage(`{}`),
		Cells: &round.Cells{Repeats: 2, Folds: 10,
			Rows: []round.CellRow{{Algorithm: "ldlf", Params: json.RawMessage(`{"trees":5}`), Only: []int{3, 11}}}},
	}
	sampleManifest = &dataset.Manifest{
		Format: 1, Rows: 13, Features: 1, Labels: 2, NonZeros: 12, Sparse: false,
		Shards:       []dataset.ShardRef{{Digest: sampleText, Rows: 13, Bytes: 2180}},
		FeatureNames: []string{"f<1>"}, LabelNames: []string{"calm", "sad"}, HasRowNames: true,
		MeanLabel: []float64{0.25, 0.75},
	}
)

// codecs lists every message and log entry, once.
func codecs() []codec {
	return append(auditCodecs(), []codec{
		jsonMessage("Heartbeat", KindHeartbeat, &Heartbeat{
			Worker: "w1", Version: "0.1.0", Protocol: 1, Numerics: 1, Slots: 4, Metrics: "10.0.0.1:9000", Leaving: true, Busy: 3,
			Full: true, Holds: []string{sampleText},
			Host: "node-7", Address: "10.0.0.1:40312", Load: 1.25,
		}),
		jsonMessage("Lead", KindLead, &Lead{Epoch: 12, Coordinator: "a",
			Refused: map[string]string{"w2": "it speaks protocol 2"}}),
		jsonMessage("Setup", KindSetup, &Setup{Epoch: 12, ID: 40, Job: sampleJob, Manifest: sampleManifest}),
		jsonMessage("Forget", KindForget, &Forget{Epoch: 12, Job: 40}),
		jsonMessage("Hold", KindHold, &Hold{Epoch: 12, Shards: sampleManifest.Shards}),
		jsonMessage("Replicate", KindReplicate, &Replicate{Digest: sampleText, Bytes: 1 << 20, From: "b"}),
		jsonMessage("Reply", KindReply, &Reply{Error: "no room"}),
		binaryMessage("Value", KindValue, drawValue, &Value{Epoch: 12, Job: 40, Ref: Ref{0xfffe, 412},
			Data: []byte{1, 2, 3}}),
		binaryMessage("Run", KindRun, drawRun, &Run{
			Stamp: sampleStamp, Kind: "leaf update", Op: 3, Of: 16, Scope: round.Sharded, Roles: dataset.Train,
			Steps: [2]uint64{100, 200}, Keep: 413,
			Shape: round.Shape{F64: 2, F32: 3, I32: 5, Rows: 1869, Width: 64}, Refs: []Ref{{1, 412}, {2, 7}},
			Tasks: []uint32{4, 5, 15},
		}),
		binaryMessage("Run/collect", KindRun, drawRun, &Run{
			Stamp: sampleStamp, Op: 4, Of: 10, Scope: round.Whole, Gather: true, Roles: dataset.AllRows, SubJob: true,
			Tasks: []uint32{0, 9}, Payload: [][]byte{{}, {0xaa, 0xbb}},
		}),
		binaryMessage("Partial", KindPartial, drawPartial, &Partial{
			Stamp: sampleStamp, Worker: "w1", Level: 2, Index: 3, Compute: 1500000,
			Partial: &round.Partial{F64: []float64{1, -2.5}, F32: []float32{0.5}, I32: []int32{-3, 4}, Index: []uint32{7, 1868},
				Values: []float32{1, 2, 3, 4}, Width: 2},
		}),
		binaryMessage("Result", KindResult, drawResult, &Result{Stamp: sampleStamp, Worker: "w1", Task: 3, Compute: 99,
			Digest: sampleText, Bytes: 4096}),
		binaryMessage("Need", KindNeed, drawNeed, &Need{Stamp: sampleStamp, Worker: "w1", Setup: true,
			Refs: []Ref{{1, 412}}}),
		binaryMessage("Fail", KindFail, drawFail, &Fail{Stamp: sampleStamp, Worker: "w1", Task: 3, Permanent: true,
			Reason: "row 7 is no row"}),
		binaryMessage("Fail/non-finite", KindFail, drawFail, &Fail{Stamp: sampleStamp, Worker: "w1", Task: 3, NonFinite: true,
			Unable: true, Reason: "value 7 is NaN"}),
		binaryMessage("Probe", KindProbe, drawProbe, &Probe{Epoch: 12}),
		binaryMessage("Chunk", KindChunk, drawChunk, &Chunk{Epoch: 12, Job: 40, Ref: Ref{0xff00, 1}, Index: 2, Of: 50,
			Digest: sampleText, Here: true, Data: []byte{1, 2, 3}}),
		binaryMessage("Chunk/named", KindChunk, drawChunk, &Chunk{Epoch: 12, Job: 40, Ref: Ref{0xff00, 1}, Index: 49, Of: 50,
			Digest: sampleText}),
		binaryMessage("Bundle", KindBundle, drawBundle,
			&Bundle{Messages: [][]byte{(&Probe{Epoch: 12}).Append(nil), {Version, byte(KindRun), 7}}}),
		binaryMessage("Fragment", KindFragment, drawFragment, &Fragment{Sender: 77, Message: 5, Offset: 3, Total: 9,
			Data: []byte{1, 2}}),
		binaryMessage("BlobGet", KindBlobGet, drawBlobGet, &BlobGet{Digest: sampleText, Offset: 1 << 18, Length: BlobChunk}),
		binaryMessage("BlobData", KindBlobData, drawBlobData, &BlobData{Found: true, Total: 1 << 19, Data: []byte("bytes")}),
		binaryMessage("BlobData/unreadable", KindBlobData, drawBlobData, &BlobData{Unreadable: true}),
		binaryMessage("Checkpoint", KindCheckpoint, drawCheckpoint, &Checkpoint{
			Stamp: sampleStamp, Worker: "w1", Task: 3, Resume: Resume{Rounds: 500, State: []byte{1, 2, 3}, Curve: []byte{7}},
		}),
		binaryMessage("Progress", KindProgress, drawProgress, &Progress{
			Stamp: sampleStamp, Worker: "w1", Task: 3, Done: Work{501, 400, 25600}, Steps: 2000, Most: 2500, Loss: 0.5,
			Counted: Work{51, 40, 2560},
		}),
		binaryMessage("entry/Commit", Kind(EntryCommit), drawCommit, &CommitEntry{
			Epoch: 12, Job: 40, Round: 900, Offset: 4, Total: 8, Progress: []byte(`{"step":900}`), Curve: []byte{6, 5},
			Data: []byte{9, 8, 7},
		}),
		jsonEntry("entry/Lead", EntryLead, LeadEntry{Node: "a", Nonce: "once"}),
		jsonEntry("entry/Lead/time", EntryLead, LeadEntry{Node: "a", Nonce: "once", Time: 1700000000, Millis: 250}),
		jsonEntry("entry/Member", EntryMember, MemberEntry{ID: "a", HTTP: "h:1", Raft: "h:2", NATS: "nats://h:3",
			Version: "0.1.0"}),
		jsonEntry("entry/DatasetPut", EntryDatasetPut, DatasetPutEntry{Name: "movie", Manifest: sampleManifest,
			Time: 1700000000}),
		jsonEntry("entry/DatasetDelete", EntryDatasetDelete, DatasetDeleteEntry{Name: "movie"}),
		jsonEntry("entry/Submit", EntrySubmit, SubmitEntry{
			Token: "t", Name: "n", Dataset: "movie", Spec: json.RawMessage(`{"algorithm":"ldlf"}`), Job: sampleJob,
			AuditPPM: 50000, MaxQueue: 1000, Time: 1700000000,
		}),
		jsonEntry("entry/JobState", EntryJobState, JobStateEntry{Epoch: 12, Job: 40, State: Failed, Error: "why",
			Time: 1700000000, Millis: 250}),
		jsonEntry("entry/Result", EntryResult, ResultEntry{Epoch: 12, Job: 40, Round: 1, Task: 3, Of: 10, Digest: sampleText,
			Bytes: 4096, Compute: 1500}),
		jsonEntry("entry/Finish", EntryFinish, FinishEntry{
			Epoch: 12, Job: 40, Outcome: json.RawMessage(`{"loss":0.07}`), Models: []ModelRef{{sampleText, sampleText, 9}},
			Seconds: 1.5, Time: 1700000000, Millis: 250,
			Curve: []byte{1, 2}, FoldCurves: [][]byte{{3}, {4}},
		}),
		jsonEntry("entry/Cancel", EntryCancel, JobEntry{Job: 40, Time: 1700000000, Millis: 250}),
		jsonEntry("entry/Condemn", EntryCondemn, CondemnEntry{Digests: []string{sampleText}}),
		jsonEntry("entry/Pause", EntryPause, JobEntry{Job: 40, Time: 1700000000, Millis: 250}),
		jsonEntry("entry/Resume", EntryResume, JobEntry{Job: 40, Time: 1700000000}),
		jsonEntry("entry/Suspect", EntrySuspect, SuspectEntry{
			Epoch: 12, Worker: "w1", Jobs: []uint64{40, 1 << 60}, Reason: "unit 3 of round 7 differs", Time: 1700000000,
		}),
		jsonEntry("entry/Trust", EntryTrust, TrustEntry{Worker: "w1"}),
		jsonEntry("entry/MemberRemove", EntryMemberRemove, MemberRemoveEntry{ID: "a"}),
		jsonEntry("entry/JobsDelete", EntryJobsDelete, JobsDeleteEntry{Jobs: []uint64{40, 1 << 60}, Time: 1700000000}),
		jsonEntry("entry/ModelDelete", EntryModelDelete, JobEntry{Job: 40, Time: 1700000000}),
		jsonEntry("entry/Experiment", EntryExperiment, ExperimentEntry{Name: "e", Jobs: []SubmitEntry{{
			Token: "t/0", Name: "n", Dataset: "movie", Spec: json.RawMessage(`{"dataset":0}`), Job: sampleCells, MaxQueue: 1000,
			Time: 1700000000,
		}}, Outline: sampleText}),
		jsonEntry("entry/Withhold", EntryWithhold, WithholdEntry{Epoch: 12, Job: 40, Round: 1, Tasks: []uint32{3, 9},
			Compute: 1500}),
	}...)
}

// auditCodecs lists the log entries about callers.
func auditCodecs() []codec {
	return []codec{
		binaryMessage("entry/Request", Kind(EntryRequest), drawRequest, &RequestEntry{
			Record: AuditRecord{Time: 1700000000, Caller: "ana", Role: "submit", Token: "0123456789abcdef",
				From: "10.0.0.1:4711", Request: "POST /v1/jobs/n/cancel", About: "job 40 (n)"},
			Inner: EncodeEntry(EntryCancel, JobEntry{Job: 40, Time: 1700000000}),
		}),
		jsonEntry("entry/Record", EntryRecord, RecordEntry{Records: []AuditRecord{{
			Time: 1700000000, Caller: NoCaller, Role: "anonymous", From: "10.0.0.2", Request: "GET /v1/jobs",
			Refused: "no identity", Count: 7,
		}}}),
		jsonEntry("entry/Revoke", EntryRevoke, RevokeEntry{Revocation{Serial: "1f", Identity: "coppice://prod/worker/w1",
			Until: 1700000000, Time: 1600000000}}),
		jsonEntry("entry/Share", EntryShare, ShareEntry{Dataset: "yeast", Jobs: []uint64{7, 9}, Owner: "ana"}),
		jsonEntry("entry/TokenPut", EntryTokenPut, TokenPutEntry{TokenRequest{ID: "0123456789abcdef", SHA256: sampleText,
			Role: "submit", Owner: "ana", Expires: 17}, 16}),
		jsonEntry("entry/TokenRevoke", EntryTokenRevoke, TokenRevokeEntry{ID: "0123456789abcdef", Time: 1700000000}),
	}
}

func jsonMessage[M any, P interface {
	*M
	message
}](name string, kind Kind, sample P) codec {
	return codec{name: name, kind: kind, sample: sample, empty: func() message {
		return P(new(M))
	}, draw: func(*rapid.T) message { return sample }}
}

func jsonEntry[E any](name string, kind EntryKind, sample E) codec {
	s := &entry[E]{kind, sample}
	return codec{name: name, kind: Kind(kind), sample: s, empty: func() message {
		return &entry[E]{kind: kind}
	}, draw: func(*rapid.T) message { return s }}
}

func binaryMessage[M any, P interface {
	*M
	message
}](name string, kind Kind, draw func(*rapid.T) *M, sample P) codec {
	empty := func() message {
		m := P(new(M))
		if part, ok := any(m).(*Partial); ok {
			part.Partial = new(round.Partial)
		}
		return m
	}
	return codec{name: name, kind: kind, binary: true, sample: sample, draw: func(t *rapid.T) message {
		return P(draw(t))
	}, empty: empty}
}

// same compares messages: an absent list is an empty one.
func same(a, b message) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.Exporter(func(reflect.Type) bool {
		return true
	}))
}

func drawBytes(t *rapid.T, what string, most int) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, what)
}

func drawStamp(t *rapid.T) Stamp {
	return Stamp{rapid.Uint64().Draw(t, "epoch"), rapid.Uint64().Draw(t, "job"), rapid.Uint64().Draw(t, "round")}
}

func drawCount(t *rapid.T, what string) uint64 { return rapid.Uint64Range(0, MaxCount).Draw(t, what) }

func drawTask(t *rapid.T) uint32 { return rapid.Uint32Range(0, MaxTasks).Draw(t, "task") }

func drawCompute(t *rapid.T) uint64 {
	return rapid.Uint64Range(0, uint64(MaxCompute)).Draw(t, "compute")
}

func drawDigest(t *rapid.T) string { return rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "digest") }

func drawRefs(t *rapid.T) (refs []Ref) {
	for range rapid.IntRange(0, MaxVars).Draw(t, "values") {
		refs = append(refs, Ref{rapid.Uint16().Draw(t, "id"), rapid.Uint64().Draw(t, "version")})
	}
	return refs
}

func drawValue(t *rapid.T) *Value {
	return &Value{Epoch: rapid.Uint64().Draw(t, "epoch"), Job: rapid.Uint64().Draw(t, "job"),
		Ref: Ref{rapid.Uint16().Draw(t, "id"), rapid.Uint64().Draw(t, "version")}, Data: drawBytes(t, "data", 50)}
}

func drawRun(t *rapid.T) *Run {
	size := rapid.IntRange(0, MaxMessage/16) // so that a partial fits in a message
	m := &Run{
		Stamp: drawStamp(t), Kind: rapid.StringMatching("[a-z0-9 -]{0,32}").Draw(t, "kind"), Op: rapid.Byte().Draw(t, "op"),
		Of:     rapid.Uint32Range(1, MaxTasks).Draw(t, "of"),
		Scope:  rapid.SampledFrom([]round.Scope{round.Sharded, round.Whole, round.None}).Draw(t, "scope"),
		Gather: rapid.Bool().Draw(t, "gather"),
		Roles:  dataset.Roles(rapid.Byte().Draw(t, "roles")), SubJob: rapid.Bool().Draw(t, "child"),
		Steps: [2]uint64{drawCount(t, "from"), drawCount(t, "to")}, Keep: rapid.Uint64().Draw(t, "keep"),
		Shape: round.Shape{F64: size.Draw(t, "f64"), F32: size.Draw(t, "f32"), I32: size.Draw(t, "i32"),
			Rows: size.Draw(t, "rows"), Width: size.Draw(t, "width")},
		Refs: drawRefs(t), Tasks: rapid.SliceOfN(rapid.Uint32Range(0, 0), 0, 20).Draw(t, "units"),
	}
	for i := range m.Tasks {
		m.Tasks[i] = rapid.Uint32Range(0, m.Of-1).Draw(t, "unit")
		if m.Gather {
			m.Payload = append(m.Payload, drawBytes(t, "payload", 9))
		}
	}
	return m
}

func drawPartial(t *rapid.T) *Partial {
	floats := rapid.SliceOfN(rapid.Float32(), 0, 9)
	return &Partial{
		Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Level: rapid.ByteRange(0, 32).
			Draw(t, "level"),
		Index: drawTask(t), Compute: drawCompute(t),
		Partial: &round.Partial{
			F64: rapid.SliceOfN(rapid.Float64(), 0, 9).Draw(t, "f64"), F32: floats.Draw(t, "f32"),
			I32: rapid.SliceOfN(rapid.Int32(), 0, 9).Draw(t, "i32"), Width: int(rapid.Uint32().Draw(t, "width")),
			Index: rapid.SliceOfN(rapid.Uint32(), 0, 9).Draw(t, "rows"), Values: floats.Draw(t, "values"),
		},
	}
}

func drawResult(t *rapid.T) *Result {
	return &Result{
		Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Task: drawTask(t), Compute: drawCompute(t),
		Digest: drawDigest(t), Bytes: rapid.Uint64Range(0, MaxBlob).Draw(t, "bytes"),
	}
}

func drawNeed(t *rapid.T) *Need {
	return &Need{Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Setup: rapid.Bool().
		Draw(t, "setup"), Refs: drawRefs(t)}
}

func drawChunk(t *rapid.T) *Chunk {
	m := &Chunk{
		Epoch: rapid.Uint64().Draw(t, "epoch"), Job: rapid.Uint64().Draw(t, "job"), Ref: Ref{rapid.Uint16().Draw(t, "id"),
			rapid.Uint64().Draw(t, "version")},
		Of: rapid.Uint32Range(1, MaxTasks).Draw(t, "of"), Digest: sampleText, Here: rapid.Bool().Draw(t, "here"),
		Data: []byte{},
	}
	m.Index = rapid.Uint32Range(0, m.Of-1).Draw(t, "index")
	if m.Here {
		m.Data = drawBytes(t, "data", 50)
	}
	return m
}

func drawBundle(t *rapid.T) *Bundle {
	m := new(Bundle)
	for range rapid.IntRange(1, 4).Draw(t, "messages") {
		m.Messages = append(m.Messages, append([]byte{Version, rapid.ByteRange(0, byte(KindBundle)-1).Draw(t, "kind")},
			drawBytes(t, "body", 50)...))
	}
	return m
}

func drawProbe(t *rapid.T) *Probe { return &Probe{rapid.Uint64().Draw(t, "epoch")} }

func drawFail(t *rapid.T) *Fail {
	return &Fail{
		Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Task: drawTask(t),
		Permanent: rapid.Bool().Draw(t, "permanent"), NonFinite: rapid.Bool().Draw(t, "non-finite"), Unable: rapid.Bool().
				Draw(t, "unable"),
		Reason: rapid.StringN(0, 99, -1).Draw(t, "reason"),
	}
}

func drawCheckpoint(t *rapid.T) *Checkpoint {
	return &Checkpoint{
		Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Task: drawTask(t),
		Resume: Resume{drawCount(t, "rounds"), drawBytes(t, "state", 50), drawBytes(t, "curve", 20)},
	}
}

func drawProgress(t *rapid.T) *Progress {
	count := rapid.Uint64Range(0, MaxCount)
	work := rapid.Custom(func(t *rapid.T) Work {
		return Work{count.Draw(t, "rounds"), count.Draw(t, "steps"), count.Draw(t, "samples")}
	})
	return &Progress{
		Stamp: drawStamp(t), Worker: rapid.StringN(0, 9, -1).Draw(t, "worker"), Task: drawTask(t), Done: work.Draw(t, "done"),
		Steps: count.Draw(t, "steps"), Most: rapid.Uint64Range(0, MaxCount).Draw(t, "most"), Loss: rapid.Float64Range(-1,
			1e300).Draw(t, "loss"), Counted: work.Draw(t, "counted"),
	}
}

func drawFragment(t *rapid.T) *Fragment {
	data := drawBytes(t, "data", 50)
	total := rapid.Uint64Range(uint64(len(data)), MaxMessage).Draw(t, "total")
	offset := rapid.Uint64Range(0, total-uint64(len(data))).Draw(t, "offset")
	return &Fragment{Sender: rapid.Uint64().Draw(t, "sender"), Message: rapid.Uint64().Draw(t, "message"), Offset: offset,
		Total: total, Data: data}
}

func drawBlobGet(t *rapid.T) *BlobGet {
	return &BlobGet{drawDigest(t), rapid.Uint64Range(0, MaxBlob).Draw(t, "offset"), rapid.Uint32Range(0, BlobChunk).
		Draw(t, "length")}
}

func drawBlobData(t *rapid.T) *BlobData {
	found := rapid.IntRange(0, 2).Draw(t, "found")
	return &BlobData{Found: found == 1, Unreadable: found == 2, Total: rapid.Uint64Range(0, MaxBlob).Draw(t, "total"),
		Data: drawBytes(t, "data", 50)}
}

func drawRequest(t *rapid.T) *RequestEntry {
	word := func(name string) string { return rapid.StringN(0, 9, 16).Draw(t, name) }
	return &RequestEntry{
		Record: AuditRecord{
			Time: rapid.Int64().Draw(t, "time"), Caller: word("caller"), Role: word("role"), Token: word("token"),
			Serial: word("serial"), From: word("from"),
			Request: word("request"), About: word("about"), Refused: word("refused"),
		},
		Inner: append([]byte{Version, byte(EntryTrust)}, drawBytes(t, "inner", 50)...),
	}
}

func drawCommit(t *rapid.T) *CommitEntry {
	e := &CommitEntry{
		Epoch: rapid.Uint64().Draw(t, "epoch"), Job: rapid.Uint64().Draw(t, "job"), Round: rapid.Uint64().Draw(t, "round"),
		Progress: drawBytes(t, "progress", 50), Curve: drawBytes(t, "curve", 50),
		Events: drawEvents(t),
	}
	if rapid.Bool().Draw(t, "blob") {
		e.Blob, e.Total = sampleText, rapid.Uint64().Draw(t, "total")
		return e
	}
	e.Data = drawBytes(t, "data", 50)
	e.Total = rapid.Uint64Range(uint64(len(e.Data)), MaxRaftState).Draw(t, "total")
	e.Offset = rapid.Uint64Range(0, e.Total-uint64(len(e.Data))).Draw(t, "offset")
	return e
}

func drawEvents(t *rapid.T) []NumberedEvent {
	word := rapid.StringN(0, 9, 16)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) NumberedEvent {
		return NumberedEvent{Number: rapid.Uint64().Draw(t, "number"), JobEvent: JobEvent{
			Time: rapid.Float64().Draw(t, "time"), Kind: EventKind(word.Draw(t, "kind")), Text: word.Draw(t, "text"),
			Worker: word.Draw(t, "worker"), Coordinator: word.Draw(t, "coordinator"), Round: rapid.Uint64().Draw(t, "round"),
			Step: rapid.Uint64().Draw(t, "step"), Seconds: rapid.Float64().Draw(t, "seconds"),
		}}
	}), 0, MaxNewEvents).Draw(t, "events")
}

func TestEveryKindHasACodec(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range codecs() {
		group := "message"
		if strings.HasPrefix(c.name, "entry/") {
			group = "entry"
		}
		seen[fmt.Sprint(group, c.kind)] = true
		if got := c.sample.Append(nil); got[0] != Version || Kind(got[1]) != c.kind {
			t.Errorf("%s begins with % x", c.name, got[:2])
		}
	}
	for file, group := range map[string]string{"protocol.go": "message", "entries.go": "entry"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		declared := regexp.MustCompile(`(?m)^\t((?:Kind|Entry)\w+) +\w+ += (\d+)`).FindAllStringSubmatch(string(b), -1)
		if len(declared) < 15 {
			t.Errorf("%s declares %d kinds", file, len(declared))
		}
		for _, m := range declared {
			if !seen[group+m[2]] {
				t.Errorf("%s has no sample in codecs", m[1])
			}
		}
	}
}

// TestRequestOfAProxy: an entry names the proxy after everything else. Without a proxy it has the bytes of older
// entries.
func TestRequestOfAProxy(t *testing.T) {
	e := RequestEntry{Record: AuditRecord{Time: 5, Caller: "ana", Role: "submit", From: "h:1", Request: "POST /x"},
		Inner: EncodeEntry(EntryTrust, TrustEntry{Worker: "w"})}
	plain := e.Append(nil)
	e.Record.Via = "edge"
	named := e.Append(nil)
	if !bytes.HasPrefix(named, plain) {
		t.Fatalf("%q does not begin with %q", named, plain)
	}
	var got RequestEntry
	for _, c := range []struct {
		b    []byte
		want string
	}{{named, "edge"}, {plain, ""}} {
		if err := got.Decode(c.b); err != nil || got.Record.Via != c.want || string(got.Inner) != string(e.Inner) {
			t.Errorf("%+v %v", got, err)
		}
	}
	for what, b := range map[string][]byte{
		"half a name": named[:len(named)-1], "an empty name": append(bytes.Clone(plain), 0, 0, 0, 0),
		"a byte behind it": append(bytes.Clone(named), 0),
		"a long name": (&RequestEntry{Record: AuditRecord{Via: strings.Repeat("x", maxVia+1)}, Inner: e.Inner}).
			Append(nil),
	} {
		if err := got.Decode(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
