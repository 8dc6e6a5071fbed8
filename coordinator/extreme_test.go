package coordinator_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// extremes are the numbers that TestExtremeNumbers puts into messages.
var extremes = []float64{math.NaN(), math.Inf(-1), math.Inf(1), math.MinInt64, -1 << 31, -5, -1, 0, 1, 1 << 20,
	1<<31 - 1, 1 << 31, 1 << 53, math.MaxInt64, math.MaxUint64}

// numbersIn appends the numbers of a value that can be set: fields, elements, and what pointers point to.
func numbersIn(all []reflect.Value, v reflect.Value) []reflect.Value {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return numbersIn(all, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all = numbersIn(all, v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range min(v.Len(), 4) {
			all = numbersIn(all, v.Index(i))
		}
	case v.CanSet() && (v.CanInt() || v.CanUint() || v.CanFloat()):
		all = append(all, v)
	}
	return all
}

// extreme sets some numbers of a message to extremes.
func extreme(rng *rand.Rand, m any) {
	numbers := numbersIn(nil, reflect.ValueOf(m))
	for range 1 + rng.IntN(2) {
		v, x := numbers[rng.IntN(len(numbers))], extremes[rng.IntN(len(extremes))]
		switch {
		case v.CanFloat():
			v.SetFloat(x)
		case x != x || math.IsInf(x, 0):
		case v.CanInt() && x >= math.MaxInt64:
			v.SetInt(math.MaxInt64 >> (64 - v.Type().Bits()))
		case v.CanInt():
			v.SetInt(int64(x))
		case x >= math.MaxUint64:
			v.SetUint(math.MaxUint64 >> (64 - v.Type().Bits()))
		default:
			v.SetUint(uint64(int64(x)))
		}
	}
}

// appended returns the bytes of a message; nil: an honest process cannot send it.
func appended(m interface{ Append([]byte) []byte }) (b []byte) {
	defer func() {
		if recover() != nil {
			b = nil
		}
	}()
	return m.Append(nil)
}

// extremeFlood sends messages with extreme numbers.
type extremeFlood struct {
	subjects protocol.Subjects
	leader   string
	epoch    uint64
	job      *round.Job
	manifest *dataset.Manifest
	send     func(subject, reply string, m []byte)
}

// one sends one message: to the leader about a job that it drives, or to the worker w0 about a job that the leader does
// not have, because a worker obeys its leader about jobs of the leader.
func (f *extremeFlood) one(rng *rand.Rand, driven uint64) {
	digest := strings.Repeat("0123456789abcdef", 4)
	results := f.subjects.Results(f.leader, f.epoch)
	stamp := protocol.Stamp{Epoch: f.epoch, Job: driven, Round: 3}
	partial := &round.Partial{F64: []float64{1, 2}, F32: []float32{3}, Index: []uint32{4}, Values: []float32{5}, Width: 1}
	toLeader := []interface{ Append([]byte) []byte }{
		&protocol.Heartbeat{Worker: "w9", Version: "0.1.0", Protocol: protocol.Version + 1, Numerics: round.Numerics,
			Slots: 2, Busy: 1, Full: true, Holds: []string{digest}},
		&protocol.Partial{Stamp: stamp, Worker: "w9", Partial: partial},
		&protocol.Result{Stamp: stamp, Worker: "w9", Digest: digest, Bytes: 10},
		&protocol.Need{Stamp: stamp, Worker: "w9", Refs: []protocol.Ref{{ID: 1, Version: 2}}},
		&protocol.Fail{Stamp: stamp, Worker: "w9", Reason: "why"},
		&protocol.Checkpoint{Stamp: stamp, Worker: "w9"},
		&protocol.Progress{Stamp: stamp, Worker: "w9", Done: protocol.Work{Rounds: 1}},
	}
	id := 1<<40 + rng.Uint64N(4)
	stamp.Job = id
	job, manifest := *f.job, *f.manifest // extreme changes them
	job.Seed, manifest.Shards = rng.Uint64(), slices.Clone(f.manifest.Shards)
	ref := protocol.Ref{ID: 1, Version: 2}
	toWorker := []interface{ Append([]byte) []byte }{
		&protocol.Setup{Epoch: f.epoch, ID: id, Job: &job, Manifest: &manifest},
		&protocol.Value{Epoch: f.epoch, Job: id, Ref: ref, Data: []byte{1, 2, 3, 4}},
		&protocol.Chunk{Epoch: f.epoch, Job: id, Ref: ref, Of: 2, Digest: digest},
		&protocol.Run{Stamp: stamp, Kind: "step", Of: 4, Roles: dataset.Train, Steps: [2]uint64{1, 2},
			Shape: round.Shape{F64: 2, F32: 3}, Refs: []protocol.Ref{ref}, Tasks: []uint32{0, 1}},
		&protocol.Forget{Epoch: f.epoch, Job: id, Round: 3, Tasks: []uint32{1}},
		&protocol.Hold{Epoch: f.epoch, Shards: manifest.Shards[:1]},
		&protocol.BlobGet{Digest: digest, Length: 10},
	}
	to := rng.IntN(len(toLeader) + len(toWorker))
	if to < len(toLeader) {
		subject := protocol.ResultsOf(results, "w9")
		if to == 0 {
			subject = f.subjects.Heartbeats("w9")
		}
		extreme(rng, toLeader[to])
		if b := appended(toLeader[to]); b != nil {
			f.send(subject, "", b)
		}
		return
	}
	toWorker = toWorker[to-len(toLeader):]
	m := toWorker[0]
	extreme(rng, m)
	for name, was := range map[string]uint64{"Epoch": f.epoch, "Job": id} {
		if field := reflect.ValueOf(m).Elem().FieldByName(name); field.IsValid() && field.CanUint() {
			field.SetUint(was)
		}
	}
	subject, reply := f.subjects.Work("w0"), protocol.ResultsOf(results, "w0")
	if len(toWorker) == 1 {
		subject, reply = f.subjects.WorkerBlobs("w0"), "inbox.nobody"
	}
	if b := appended(m); b != nil {
		f.send(subject, reply, b)
	}
}

// TestExtremeNumbers: ten thousand messages with extreme numbers, from a worker to the leader and from the leader to a
// worker, end no process. The job that runs meanwhile has the digest of --local.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	nats := natstest.Server(t, bus.ServerOptions{Ping: bus.DefaultPing})
	c := prepare(t, 1)
	c.tune = func(cfg *coordinator.Config) { cfg.NATS = nats.ClientURL() }
	c.startAll(1)
	c.put(ctx, "art")
	s := eventful()
	want := localDigest(t, s)
	elections := c.elections.Load()
	info, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	manifest, _, err := importer.Build(generate.Artificial(600, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := spec.Resolve(s, manifest)
	if err != nil {
		t.Fatal(err)
	}
	flood := &extremeFlood{
		subjects: protocol.Subjects{Cluster: info.ID}, leader: info.Leader, epoch: info.Epoch, job: job, manifest: manifest,
		send: func(subject, reply string, m []byte) {
			if err := conn.Send(subject, reply, m); err != nil {
				t.Error(err)
			}
		},
	}
	end := c.train(ctx, s, func() {
		jobs, err := c.client.Jobs().List(ctx, protocol.JobQuery{})
		if err != nil || len(jobs.Jobs) != 1 {
			t.Errorf("%v jobs, error %v", jobs, err)
			return
		}
		for i := range uint64(10_000) {
			rng := rand.New(rand.NewPCG(1, i))
			if flood.one(rng, jobs.Jobs[0].ID); i%100 == 0 { // the leader answers, and receivers need not drop messages
				if _, err := c.client.Cluster(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	s.Name = "again" // all messages have arrived
	if got := c.train(ctx, s, nil).Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	c.staysLed(ctx, info.Epoch, elections)
}
