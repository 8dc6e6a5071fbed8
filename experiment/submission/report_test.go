package submission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/report"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// equalRuns is a cluster that has one outcome for all runs.
type equalRuns struct {
	cluster
	outcome protocol.CellOutcome
}

func (c *equalRuns) Outcomes(_ context.Context, job uint64, _ bool, take func(protocol.CellOutcome) error) error {
	for run := range c.jobs[job-1].Job.Cells.Count() {
		o := c.outcome
		o.Task = run
		if err := take(o); err != nil {
			return err
		}
	}
	return nil
}

// withRuns returns a cluster with an experiment of 10 methods, 10 folds and some repeats.
func withRuns(b *testing.B, repeats int, record string) *equalRuns {
	text := fmt.Sprintf("name: e\n%sfolds: {k: 10, repeats: %d}\ndatasets: [{dataset: a}]\nmethods:\n", record, repeats)
	for k := range 10 {
		text += fmt.Sprintf("  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k, k+1)
	}
	s, err := experiment.Parse(b.Context(), "e.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	m, _ := datatest.Artificial(b, 1000)
	p, err := experiment.NewPlan(b.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m})
	if err != nil {
		b.Fatal(err)
	}
	c := &equalRuns{}
	sub, err := (&Experiment{Name: s.Name, source: c}).Add(b.Context(), s, []Plan{{p, "a"}}, nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := sub.Jobs[0]
	c.jobs = []protocol.JobInfo{{ID: 1, Name: r.Name, Experiment: s.Name, Outline: sub.Outline, State: protocol.Running,
		Job: r.Job, Spec: r.Spec}}
	c.blobs = map[string][]byte{sub.Outline: sub.Blobs[0]}
	more := &measures.Added{Distribution: new(measures.OfDistribution)}
	o := &pipeline.Outcome{
		ModelDigest: strings.Repeat("a", 64), Steps: 100, Loss: 1. / 3, EvaluatedOn: "test samples",
		Rows:  pipeline.Counts{Train: 900, Test: 100},
		Added: &pipeline.Added{Model: more, MeanPredictor: more},
		Clipped: &pipeline.Clipped{Model: &measures.Clipped{More: more.Distribution},
			MeanPredictor: &measures.Clipped{More: more.Distribution}},
	}
	for i := range o.Measures {
		o.Measures[i], o.MeanPredictor[i] = measures.Stat{Mean: 1 / float64(i+3), Std: .125},
			measures.Stat{Mean: 1 / float64(i+2), Std: .25}
	}
	if c.outcome.Outcome, err = json.Marshal(o); err != nil {
		b.Fatal(err)
	}
	if record != "" {
		line, set := curve.NewRecorder(curve.FoldPoints, nil), &predictions.Set{Labels: 3}
		for step := range curve.FoldPoints {
			line.Observe(round.Progress{Step: uint64(step + 1), Loss: .5}, curve.Unknown)
		}
		line.End()
		for range round.MaxPredictedRows {
			set.Add(7, []float32{1, 0, 0}, []float32{.5, .25, .25})
		}
		c.outcome.Curve, c.outcome.Predictions = line.Curve().Append(nil), set.Encode()
	}
	return c
}

// BenchmarkReport measures the memory that a report takes for each run, and at most.
func BenchmarkReport(b *testing.B) {
	for _, x := range []struct {
		repeats int
		record  string
	}{{200, ""}, {2000, ""}, {200, "record: [curve, predictions]\n"}} {
		b.Run(fmt.Sprintf("%d runs %s", 100*x.repeats, strings.TrimSpace(x.record)), func(b *testing.B) {
			c := withRuns(b, x.repeats, x.record)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			before, most := m.HeapInuse, uint64(0)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapInuse)
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
			}()
			for b.Loop() {
				e, err := Read(b.Context(), c, "e")
				if err != nil {
					b.Fatal(err)
				}
				l, err := e.Layout(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				t, _, err := e.Table(b.Context(), l)
				if err != nil {
					b.Fatal(err)
				}
				var text bytes.Buffer
				if err := report.Write(&text, t, "json", report.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			<-stopped
			b.ReportMetric(float64(most-before)/float64(100*x.repeats), "B/run")
			b.ReportMetric(float64(most-before)/(1<<20), "MiB")
		})
	}
}
