package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// digest returns a well-formed digest that c fills.
func digest(c byte) string { return strings.Repeat(string(c), 64) }

// sumOf is digest in binary.
func sumOf(c byte) digests.Digest {
	d, _ := digests.Parse(digest(c))
	return d
}

// manifest returns a small dataset with the single shard digest(c).
func manifest(c byte) *dataset.Manifest {
	return &dataset.Manifest{
		Format: dataset.ManifestFormat, Rows: 20, Features: 3, Labels: 2,
		Shards:     []dataset.ShardRef{{Digest: digest(c), Rows: 20, Bytes: 400}},
		LabelNames: []string{"<a>", "b"},
	}
}

func jobOn(m *dataset.Manifest, seed uint64) *round.Job {
	return &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: seed, Dataset: m.Digest(),
		Params: json.RawMessage(`{"trees": 5}`)}
}

// machine applies entries one after the other.
type machine struct {
	t     testing.TB
	s     *State
	index uint64
}

func newMachine(t testing.TB) *machine { return &machine{t: t, s: New()} }

// raw applies an encoded entry.
func (m *machine) raw(entry []byte) Result {
	m.index += 2 // Raft's own entries make gaps
	var r Result
	m.s, r = m.s.Apply(m.index, entry)
	return r
}

// do applies an entry and returns its value; it must be accepted.
func (m *machine) do(k protocol.EntryKind, body any) any {
	m.t.Helper()
	r := m.raw(encodeEntry(k, body))
	if r.Err != nil {
		m.t.Fatalf("entry %d, %+v: %v", m.index, body, r.Err)
	}
	return r.Value
}

// refused applies an entry and returns why it was refused; it must be, without a trace.
func (m *machine) refused(k protocol.EntryKind, body any) error {
	m.t.Helper()
	before := *m.s
	r := m.raw(encodeEntry(k, body))
	if r.Err == nil {
		m.t.Fatalf("entry %d, %+v: accepted", m.index, body)
	}
	before.index = m.index
	if !bytes.Equal(encode(m.t, &before), encode(m.t, m.s)) {
		m.t.Errorf("entry %d, %+v: refused, but it left a trace", m.index, body)
	}
	return r.Err
}

func encodeEntry(k protocol.EntryKind, body any) []byte {
	switch e := body.(type) {
	case *protocol.CommitEntry:
		return e.Append(nil)
	case *protocol.RequestEntry:
		return e.Append(nil)
	}
	return protocol.EncodeEntry(k, body)
}

func (m *machine) lead(node string) uint64 {
	m.t.Helper()
	return m.do(protocol.EntryLead, &protocol.LeadEntry{Node: node, Nonce: "n"}).(uint64)
}

// start imports a dataset, submits a job on it and makes it run.
func (m *machine) start() *Job {
	m.t.Helper()
	epoch := m.lead("a")
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "yeast", Manifest: manifest('d'), Time: 1})
	j := m.submit("t1", "", 1)
	return m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running,
		Time: 3}).(*Job)
}

func (m *machine) submit(token, name string, seed uint64) *Job {
	m.t.Helper()
	return m.do(protocol.EntrySubmit, submitEntry(token, name, seed)).(*Job)
}

func submitEntry(token, name string, seed uint64) *protocol.SubmitEntry {
	return &protocol.SubmitEntry{
		Token: token, Name: name, Dataset: "yeast", Spec: json.RawMessage(`{"algorithm":"ldlf"}`), Job: jobOn(manifest('d'),
			seed), Time: 2,
	}
}

// experimentEntry is an experiment of so many jobs.
func experimentEntry(token, name string, jobs int) *protocol.ExperimentEntry {
	e := &protocol.ExperimentEntry{Name: name}
	for i := range jobs {
		one := submitEntry(fmt.Sprintf("%s/%d", token, i), fmt.Sprintf("%s.%d", name, i), uint64(i))
		one.Job.Algorithm, one.Job.Cells = round.AlgorithmCells, &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}},
			Repeats: 1, Folds: 4}
		e.Jobs = append(e.Jobs, *one)
	}
	return e
}

func encode(t testing.TB, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t testing.TB, b []byte) *State {
	t.Helper()
	s, err := Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
