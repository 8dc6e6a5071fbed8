package ldlf

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

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
	given := algorithms.Values{"patience": int64(20)}
	for k := range folds {
		r, err := Algorithm{}.Resolve(given, m)
		if err != nil { t.Fatal(err) }
		j := &algorithms.Job{Algorithm: Name, Seed: seed(), Params: r.Params, Split: dataset.Split{Seed: seed(), Assigned: "x", Fold: k, ValidationFraction: r.ValidationFraction, ValidationMin: r.ValidationMin}}
		roles, err := j.Split.Assign(m.Rows, fold)
		if err != nil { t.Fatal(err) }
		d := dataset.NewData(m, roles)
		for i, s := range shards { d.SetShard(i, s) }
		tr, kn := start(t, j, m)
		rows := func(role dataset.Roles) []float64 {
			mo := newModel(tr.size, tr.cfg.Scaling, tr.input, tr.phi, tr.theta, tr.q)
			p := predictAll(mo, d)
			var out []float64
			for i := range m.Shards {
				s := d.Shard(i)
				for pos, row := range s.Row {
					if roles[row] == role { out = append(out, divergence(s.Label(pos), p[int(row)*mo.labels:][:mo.labels])) }
				}
			}
			return out
		}
		last := phaseStep
		drive(t, tr, kn, d, 1, func(tr *trainer) {
			if last == phaseValidate {
				te := rows(dataset.Test)
				b, _ := json.Marshal(map[string]any{"name": name, "seed": seed(), "fold": k, "step": tr.step, "test": total(te)/float64(len(te)), "val": rows(dataset.Validation)})
				fmt.Println(string(b))
			}
			last = tr.phase
		})
	}
}

func seed() uint64 { s, _ := strconv.Atoi(os.Getenv("ZZS")); return uint64(max(1, s)) }
