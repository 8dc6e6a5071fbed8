package ndf

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// golden pins the bits of small forests.
var golden = map[string]struct {
	digest  string
	classes bool
	set     param.Values
}{
	"classes": {"bcd755d78dcbb2ed74d57fe5a5b76d845ee7daa6775edb4d27b5e45af7685f60", true,
		param.Values{"trees": int64(3), "hidden": "2-6"}},
	"distributions": {"ca2b608c854aa98df6e936ee9f755761b2eab5443f1756324fc5ec1779048eef", false,
		param.Values{"trees": int64(3), "hidden": "adaptive", "preset": "paper"}},
	"mini-batches": {"8df7a8558382d53e7e43842d50b957c9e532c55ea9c9aab19ffa29d8c5ffa1bc", true,
		param.Values{"trees": int64(2), "batch_above": int64(100), "batch_size": int64(32), "hidden": "0"}},
}

// TestGoldenDigest: the same bits for one lane and many, one shard and many, dense and sparse
// rows, with vector instructions and without.
func TestGoldenDigest(t *testing.T) {
	for name, c := range golden {
		t.Run(name, func(t *testing.T) {
			check := func(how string, d *dataset.Data, lanes int) {
				t.Helper()
				if got := modelfile.Digest(Name, trained(t, d, lanes, c.set).Tensors()); got != c.digest {
					t.Errorf("%s: digest %s, want %s", how, got, c.digest)
				}
			}
			data := func(shards int, sparse bool) *dataset.Data {
				return rowsOf(300, 9, 4, shards, sparse, someRows(7, 9, 4, c.classes))
			}
			check("one lane", data(1, false), 1)
			check("three lanes, five shards", data(5, false), 3)
			check("sparse", data(2, true), 1)
			portable(func() { check("without vectors", data(1, false), 1) })
		})
	}
}

// TestPrediction: a forest predicts the mean of its trees' leaves, found by the twin, for hard
// and soft routing.
func TestPrediction(t *testing.T) {
	for _, routing := range []string{routingHard, routingSoft} {
		d := rowsOf(600, 9, 4, 3, routing == routingSoft, someRows(8, 9, 4, false))
		m := trained(t, d, 1, param.Values{"trees": int64(3), "routing": routing, "hidden": "0-5"}).(*model)
		refs := d.Select(0, 3, dataset.AllRows)
		shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
		dst := make([]float32, 4*len(refs))
		m.Predict(dst, refs, shard, m.NewScratch())
		for i, ref := range refs {
			x := dense(shard(ref.Shard), int(ref.Pos))
			want := make([]float64, 4)
			for k, tree := range m.trees {
				addPrediction(want, tree, m.networks[k], x, 0, 1.0/3, m.soft)
			}
			for c, v := range want {
				if math.Abs(v-float64(dst[4*i+c])) > 2e-5 {
					t.Fatalf("%s, row %d: %v, want %v", routing, i, dst[4*i:4*i+4], want)
				}
			}
		}
	}
}

func dense(rows *dataset.Rows, pos int) []float64 {
	x := make([]float64, rows.Features)
	if !rows.Sparse {
		for i, v := range rows.Dense(pos) {
			x[i] = float64(v)
		}
		return x
	}
	columns, values := rows.NonZeros(pos)
	for i, c := range columns {
		x[c] = float64(values[i])
	}
	return x
}

// addPrediction adds what the part of a tree below a node predicts of a row, times share.
func addPrediction(dst []float64, tree *Tree, networks []network, x []float64, at int, share float64, soft bool) {
	number, left, split := tree.Test(at)
	if !split {
		for c, v := range tree.Distribution(int(left)) {
			dst[c] += share * float64(v)
		}
		return
	}
	n := &networks[number]
	net := &twin{inputs: len(n.inputs), hidden: n.hidden}
	for _, w := range n.weights {
		net.w = append(net.w, float64(w))
	}
	var z []float64
	for i, f := range n.inputs {
		z = append(z, (x[f]-float64(n.shift[i]))*float64(n.scale[i]))
	}
	out := net.output(z)
	f := 1 / (1 + math.Exp(-out))
	if !soft {
		f = 0
		if out > 0 {
			f = 1
		}
	}
	for side, p := range []float64{f, 1 - f} {
		if p > 0 {
			addPrediction(dst, tree, networks, x, int(left)+side, share*p, soft)
		}
	}
}

// TestSharedSplit: with rows routed to one side, log Q/n + H is the information gain that rf's
// splits are chosen by.
func TestSharedSplit(t *testing.T) {
	p := &posteriors{}
	p.resize(2)
	m := &masses{classes: 2, rows: 8, single: true, from: []int{0, 5, 8}, w: []float32{1, 1, 1, 1, 1, 1, 1, 1}, total: 8}
	fl := []float64{1, 1, 1, 1, 0, 0, 0, 1}
	fr := []float64{0, 0, 0, 0, 1, 1, 1, 0}
	p.start(m, fl, fr)
	h := func(v ...float64) (sum float64) {
		for _, x := range v {
			sum -= x * math.Log(x)
		}
		return sum
	}
	want := h(5.0/8, 3.0/8) - 5.0/8*h(4.0/5, 1.0/5) - 3.0/8*h(1.0/3, 2.0/3)
	if got := p.logQ(m, fl, fr)/8 + h(5.0/8, 3.0/8); math.Abs(got-want) > 1e-12 {
		t.Errorf("gain %v, want %v", got, want)
	}
}

// TestStateCuts: a trainer restored before or after the round goes on as it was; damaged states and
// parts are refused.
func TestStateCuts(t *testing.T) {
	d := rowsOf(200, 5, 3, 2, false, someRows(9, 5, 3, true))
	j := jobOf(t, d.Manifest, param.Values{"trees": int64(3), "max_depth": int64(2)})
	state := []byte(nil)
	for _, rounds := range []int{0, 1} {
		tr, err := New().NewTrainer(j, d.Manifest, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rounds == 1 {
			if err := tr.Fold(&round.Result{Gathered: partsOf(t, j, d, tr)}); err != nil {
				t.Fatal(err)
			}
		}
		if state, err = tr.AppendState(nil); err != nil {
			t.Fatal(err)
		}
		again, err := New().NewTrainer(j, d.Manifest, state)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := again.AppendState(nil); !bytes.Equal(second, state) || again.Progress() != tr.Progress() {
			t.Fatalf("after %d rounds a restored trainer is another", rounds)
		}
	}
	for _, n := range []int{0, 9, 20, len(state) / 2, len(state) - 1} {
		if _, err := New().NewTrainer(j, d.Manifest, state[:n:n]); err != nil && !errors.Is(err, fields.ErrState) ||
			err == nil {
			t.Errorf("%d bytes of a state: error %v", n, err)
		}
	}
}

// partsOf grows the trees of a round.
func partsOf(t testing.TB, j *round.Job, d *dataset.Data, tr round.Trainer) (parts [][]byte) {
	t.Helper()
	k, err := New().NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := tr.Next()
	for id := range r.Tasks {
		part, err := k.(round.GatherKernel).Gather(t.Context(), r.Task(id), d, nil, k.NewScratch())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	return parts
}

// someTree returns an encoded tree with its number of inputs.
func someTree(t testing.TB) (encoded []byte, inputs int) {
	d := rowsOf(120, 5, 3, 1, false, someRows(9, 5, 3, true))
	j := jobOf(t, d.Manifest, param.Values{"trees": int64(1), "max_depth": int64(3), "hidden": "0-3", "share": 0.6})
	tr, err := New().NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	return partsOf(t, j, d, tr)[0], 3
}

// TestTreesAreRefused: a tree that is bent in one way each.
func TestTreesAreRefused(t *testing.T) {
	good, inputs := someTree(t)
	tree, err := decodeTree(good, 5, 3, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if again := tree.AppendBinary(nil); !bytes.Equal(again, good) || len(again) != tree.Size() {
		t.Error("a tree is encoded otherwise once it was decoded")
	}
	for want, bend := range map[string]func(*Tree){
		"input 2 of network 0 is feature 5": func(t *Tree) { t.inputs[2] = 5 },
		"input 1 of network":                func(t *Tree) { t.inputs[1] = t.inputs[0] },
		"has 513 hidden":                    func(t *Tree) { t.hidden[0] = 513 },
		"it has 55 weights":                 func(t *Tree) { t.weights = t.weights[1:] },
		"not finite":                        func(t *Tree) { t.scale[0] = float32(math.Inf(1)) },
		"has network":                       func(t *Tree) { t.Split(int(t.Leaves()), 0, 0, 0) },
	} {
		bent, err := decodeTree(bytes.Clone(good), 5, 3, inputs)
		if err != nil {
			t.Fatal(err)
		}
		bent.inputs, bent.hidden, bent.scale = slices.Clone(bent.inputs), slices.Clone(bent.hidden), slices.Clone(bent.scale)
		bend(bent)
		if _, err := decodeTree(bent.AppendBinary(nil), 5, 3, inputs); !errors.Is(err, forest.ErrTree) ||
			want != "has network" && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestSettings: each wrong setting is named, with what would be right.
func TestSettings(t *testing.T) {
	m := &dataset.Manifest{Rows: 100, Features: 9, Labels: 3}
	for want, given := range map[string]param.Values{
		"l1: -0.001 is not a number from 0":      {"l1": -0.001},
		`hidden: "none": want a number of units`: {"hidden": "none"},
		"batch_size: got 9 samples, want at most batch_above, 8": {"batch_size": int64(9),
			"batch_above": int64(8)},
		"min_samples: a sampling_ratio of 1 of 100 training samples makes 100": {"min_samples": int64(101)},
		`routing: "both" is not hard or soft`:                                  {"routing": "both"},
		"max_depth: 21 is not":                                                 {"max_depth": int64(21)},
		"share: 0 is not a number":                                             {"share": 0.0},
		"sampling_ratio: 1.5 is not a number from":                             {"sampling_ratio": 1.5},
		"learning_rate: 0 is not a number from 1e-12":                          {"learning_rate": 0.0},
	} {
		_, err := New().Resolve(given, m)
		var wrong *param.Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %s...", given, err, want)
		}
	}
	wide := &dataset.Manifest{Rows: 1 << 20, Features: 1 << 20, Labels: 2}
	if _, err := New().Resolve(nil, wide); err == nil ||
		!strings.HasPrefix(err.Error(), "share: a node of up to 4096 samples") {
		t.Errorf("a wide dataset: error %v", err)
	}
}

// FuzzDecodeTree: no bytes make the decoder panic or take memory out of proportion; what it
// accepts it writes again.
func FuzzDecodeTree(f *testing.F) {
	good, inputs := someTree(f)
	f.Add(good)
	f.Add(good[:len(good)-4])
	f.Add([]byte{treeFormat})
	f.Fuzz(func(t *testing.T, b []byte) {
		var tree *Tree
		var err error
		allocs.AtMost(t, 16*len(b)+64<<10, "a tree", func() { tree, err = decodeTree(bytes.Clone(b), 5, 3, inputs) })
		if _, _, bad := peekTree(b); bad != nil && err == nil {
			t.Fatalf("a tree without a head: %v", bad)
		}
		if err != nil {
			if !errors.Is(err, forest.ErrTree) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !bytes.Equal(tree.AppendBinary(nil), b) {
			t.Fatal("a tree is written otherwise than it was read")
		}
		use(t, newModel([]*Tree{tree}, 5, 3, inputs, len(b)%2 == 0))
	})
}

// use predicts a row and describes the model.
func use(t *testing.T, m *model) {
	t.Helper()
	m.Describe()
	r := &dataset.Rows{N: 1, Features: m.features, Labels: m.labels, Row: []uint32{0}, X: make([]float32, m.features)}
	dst := make([]float32, m.labels)
	m.Predict(dst, []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	for _, v := range dst {
		if v-v != 0 {
			t.Fatalf("it predicts %v", dst)
		}
	}
}

// FuzzRestore: no bytes make a trainer panic or take memory out of proportion, and
// what it accepts it writes again, and can make a model of.
func FuzzRestore(f *testing.F) {
	m := &dataset.Manifest{Rows: 120, Features: 5, Labels: 3}
	c := configOf(f, param.Values{"trees": int64(1), "share": 0.6}, m)
	good, inputs := someTree(f)
	tree, err := decodeTree(good, 5, 3, inputs)
	if err != nil {
		f.Fatal(err)
	}
	done := newTrainer(c, m)
	done.Trees = []*Tree{tree}
	state, err := fields.Append(nil, stateFormat, done.State)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte{stateFormat})
	f.Add(append([]byte{stateFormat}, bytes.Repeat([]byte{0xff}, 9)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := newTrainer(c, m)
		var err error
		allocs.AtMost(t, 16*len(b)+64<<10, "a trainer's state", func() {
			err = fields.Read(bytes.Clone(b), stateFormat, tr.State)
		})
		if err != nil {
			if !errors.Is(err, fields.ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again, err := fields.Append(nil, stateFormat, tr.State); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("a state of %d bytes is written again as %d, error %v", len(b), len(again), err)
		}
		tr.Progress()
		tr.Counters()
		if r, err := tr.Next(); err != nil || r != nil {
			return
		}
		restored, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		use(t, restored.(*model))
	})
}

// FuzzSettings: the settings of a job come as JSON: they are refused, or those of a job whose
// halves can be made.
func FuzzSettings(f *testing.F) {
	raw, err := settings.JSON(settings.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(raw), uint16(100))
	f.Add(bytes.Replace(raw, []byte(`"8"`), []byte(`"adaptive-9"`), 1), uint16(1))
	f.Add([]byte(`{"trees":1e9}`), uint16(9))
	f.Fuzz(func(t *testing.T, raw []byte, rows uint16) {
		var c *Config
		var err error
		allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { c, err = settings.Parse(raw) })
		if err != nil || rows == 0 {
			return
		}
		again, err := settings.JSON(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := settings.Parse(again); err != nil || *back != *c {
			t.Fatalf("%s is read as %+v, error %v", again, back, err)
		}
		m := &dataset.Manifest{Format: 1, Rows: int(rows), Features: 3, Labels: 2, Shards: make([]dataset.ShardRef, 1)}
		j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: raw}
		tr, err := New().NewTrainer(j, m, nil)
		if err != nil {
			return
		}
		if r, err := tr.Next(); err != nil || r.Tasks != c.Trees {
			t.Fatalf("round %+v, error %v", r, err)
		}
		if _, err := New().NewKernel(j, m); err != nil {
			t.Fatal(err)
		}
		if f, err := New().Footprint(j, m); err != nil || f.State < 0 || f.Model <= 0 {
			t.Fatalf("footprint %+v, error %v", f, err)
		}
	})
}

// FuzzDecodeModel: the tensors of a model, bent by bytes, are refused or predict.
func FuzzDecodeModel(f *testing.F) {
	good, inputs := someTree(f)
	tree, err := decodeTree(good, 5, 3, inputs)
	if err != nil {
		f.Fatal(err)
	}
	file, _ := modelfile.Encode(Name, newModel([]*Tree{tree, tree}, 5, 3, inputs, true).Tensors(), nil)
	f.Add(uint8(0), uint16(0), uint32(0))
	f.Add(uint8(5), uint16(1), uint32(1))
	f.Add(uint8(10), uint16(0), uint32(600))
	f.Add(uint8(14), uint16(3), uint32(0x7f800000))
	f.Fuzz(func(t *testing.T, number uint8, at uint16, bits uint32) {
		decoded, err := modelfile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		bent := slices.Clone(decoded.Tensors)
		bend(&bent[int(number)%len(bent)], int(at), bits)
		var m *model
		allocs.AtMost(t, 64*len(file)+64<<10, "a model", func() { m, err = decodeModel(bent) })
		if err == nil {
			use(t, m)
			m.Tensors()
		}
	})
}

// bend changes a value of a tensor, or cuts it.
func bend(x *algorithms.Tensor, at int, bits uint32) {
	switch {
	case at == 1<<16-1:
		x.U32, x.F32, x.F64 = nil, nil, nil
	case len(x.U32) > 0:
		x.U32 = slices.Clone(x.U32)
		x.U32[at%len(x.U32)] = bits
	case len(x.F32) > 0:
		x.F32 = slices.Clone(x.F32)
		x.F32[at%len(x.F32)] = math.Float32frombits(bits)
	case len(x.F64) > 0:
		x.F64 = slices.Clone(x.F64)
		x.F64[at%len(x.F64)] = math.Float64frombits(uint64(bits) << 32)
	}
}
