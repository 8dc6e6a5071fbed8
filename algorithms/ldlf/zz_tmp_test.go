package ldlf

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
	"time"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

func TestZZ(t *testing.T) {
	name := os.Getenv("ZZ")
	if name == "" {
		t.Skip()
	}
	src, err := dataset.Open(shared(t, "data/"+name+".mat"), dataset.OpenOptions{})
	if err != nil { t.Fatal(err) }
	m, shards, err := dataset.Build(src, dataset.ImportOptions{})
	if err != nil { t.Fatal(err) }
	f, _ := os.Open(shared(t, "folds/"+name+".csv"))
	recs, _ := csv.NewReader(f).ReadAll()
	fold := make([]uint16, m.Rows)
	for _, r := range recs[1:] {
		a, _ := strconv.Atoi(r[0]); b, _ := strconv.Atoi(r[1])
		fold[a] = uint16(b)
	}
	folds := 10
	if s := os.Getenv("ZZF"); s != "" { folds, _ = strconv.Atoi(s) }
	given := algorithms.Values{}
	if os.Getenv("ZZA") != "" {
		given = algorithms.Values{"scaling": "none", "learning_rate": 5.0, "batch_size": int64(256), "weight_decay": 1e-5, "init_std": 1.0, "validation_fraction": 0.0, "steps": int64(4500)}
	}
	sum := 0.0
	for k := range folds {
		r, err := Algorithm{}.Resolve(given, m)
		if err != nil { t.Fatal(err) }
		j := &algorithms.Job{Algorithm: Name, Seed: seed(), Params: r.Params, Split: dataset.Split{Seed: seed(), Assigned: "x", Fold: k, ValidationFraction: r.ValidationFraction, ValidationMin: r.ValidationMin}}
		roles, err := j.Split.Assign(m.Rows, fold)
		if err != nil { t.Fatal(err) }
		d := dataset.NewData(m, roles)
		for i, s := range shards { d.SetShard(i, s) }
		tr, kn := start(t, j, m)
		t0 := time.Now()
		drive(t, tr, kn, d, 1, func(*trainer) {})
		el := time.Since(t0)
		mo := modelOf(t, tr)
		p := predictAll(mo, d)
		kl, n := 0.0, 0
		for i := range m.Shards {
			s := d.Shard(i)
			for pos, row := range s.Row {
				if roles[row] == dataset.Test { kl += divergence(s.Label(pos), p[int(row)*mo.labels:][:mo.labels]); n++ }
			}
		}
		kl /= float64(n)
		sum += kl
		fmt.Printf("%s fold %d: steps %d best %d val %.4f KL %.5f  %v (%.2f ms/step)\n", name, k, tr.step, tr.best.step, tr.best.loss, kl, el, float64(el.Microseconds())/1000/float64(tr.step))
	}
	fmt.Printf("%s mean %.5f\n", name, sum/float64(folds))
}

func seed() uint64 { s, _ := strconv.Atoi(os.Getenv("ZZS")); return uint64(max(1, s)) }
