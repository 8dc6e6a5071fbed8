package ldlf

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// scaleBy runs the scaling rounds of a job and returns shifts and scales.
func scaleBy(t *testing.T, kind string, p *problem, shards int, sparse bool) (shift, scale []float64, d *dataset.Data) {
	c := smallConfig()
	c.Scaling, c.ValidationFraction = kind, 0.2
	j := jobOf(c, 3)
	j.Split.TestFraction = 0.2
	m, d := p.data(shards, sparse, j.Split)
	tr, k := start(t, j, m)
	s := k.NewScratch()
	for tr.phase <= phaseExtremes {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		var sum, part round.Partial
		sum.Reset(r.Shape)
		for id := range r.Units {
			part.Reset(r.Shape)
			if err := k.Run(&part, r.Unit(id), d, r.Vars, nil, s); err != nil {
				t.Fatal(err)
			}
			add(&sum, &part, r.Shape)
		}
		if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
			t.Fatal(err)
		}
	}
	shift, scale = tr.halves()
	return shift, scale, d
}

// column lists the training values of a column.
func column(p *problem, d *dataset.Data, i int) []float64 {
	var v []float64
	for row := range p.n {
		if d.Role(uint32(row)) == dataset.Train {
			v = append(v, float64(p.x[row*p.features+i]))
		}
	}
	return v
}

// scalingProblem has a column far from zero, a constant one, a zero one and one
// without zeros.
func scalingProblem() *problem {
	p := makeProblem(3, 130, 6, 2, 0.6)
	for i := range p.n {
		x := p.x[i*p.features:]
		x[0] += 10000
		x[1] = 0.1
		x[2] = 0
		x[3] = x[3]*x[3] + 1
	}
	return p
}

func TestStandardScaling(t *testing.T) {
	p := scalingProblem()
	for _, sparse := range []bool{false, true} {
		shift, scale, d := scaleBy(t, scalingStandard, p, 4, sparse)
		for i := range p.features {
			v := column(p, d, i)
			mean, deviation := moments(v)
			wantScale := 1 / deviation
			if i == 1 || i == 2 {
				wantScale = 1
			}
			if abs(shift[i]-mean) > 1e-12*abs(mean) || abs(scale[i]/wantScale-1) > 1e-12 {
				t.Errorf("sparse %v, column %d: shift %v and scale %v, want %v and %v", sparse, i, shift[i], scale[i], mean, wantScale)
			}
		}
	}
}

func moments(v []float64) (mean, deviation float64) {
	mean = total(v) / float64(len(v))
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(len(v)))
}

func TestMinMaxScaling(t *testing.T) {
	p := scalingProblem()
	for _, shards := range []int{1, 4, 64} { // 64: some units have no training rows
		for _, sparse := range []bool{false, true} {
			shift, scale, d := scaleBy(t, scalingMinMax, p, shards, sparse)
			for i := range p.features {
				least, greatest := math.Inf(1), math.Inf(-1)
				for _, x := range column(p, d, i) {
					least, greatest = min(least, x), max(greatest, x)
				}
				want := 1.0
				if greatest > least {
					want = 1 / (greatest - least)
				}
				if shift[i] != least || scale[i] != want {
					t.Errorf("%d shards, sparse %v, column %d: shift %v and scale %v, want %v and %v", shards, sparse, i, shift[i], scale[i], least, want)
				}
			}
		}
	}
}

// TestMinMaxChunks: many columns take several rounds of bounded size.
func TestMinMaxChunks(t *testing.T) {
	c := smallConfig()
	c.Scaling = scalingMinMax
	m := &dataset.Manifest{Rows: 100, Features: 50_000, Labels: 2, Shards: make([]dataset.ShardRef, 64)}
	tr, _ := start(t, jobOf(c, 1), m)
	columns := 0
	for tr.phase == phaseExtremes {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Shape.F64 > slotLimit+len(m.Shards) {
			t.Fatalf("a partial of %d values", r.Shape.F64)
		}
		from, to := tr.chunk()
		if from != columns {
			t.Fatalf("the chunk begins at %d, want %d", from, columns)
		}
		columns = to
		var sum round.Partial
		sum.Reset(r.Shape)
		sum.F64[0] = 1
		if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
			t.Fatal(err)
		}
	}
	if columns != m.Features {
		t.Errorf("%d columns of %d were seen", columns, m.Features)
	}
}
