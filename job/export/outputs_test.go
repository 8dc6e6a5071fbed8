package export

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// graphOf exports a model and reads the file.
func graphOf(t testing.TB, m *predict.Model) (*graph.Graph, map[string]string) {
	t.Helper()
	var file bytes.Buffer
	if err := ONNX(&file, m); err != nil {
		t.Fatal(err)
	}
	return decodeONNX(t, file.Bytes())
}

// predicted returns the columns that `predict` writes for samples, by name.
func predicted(t testing.TB, m *predict.Model, src dataset.Source) map[string][]string {
	t.Helper()
	var file bytes.Buffer
	if _, err := m.WriteCSV(&file, src, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := make(map[string][]string)
	for _, r := range records[1:] {
		for i, name := range records[0] {
			columns[name] = append(columns[name], r[i])
		}
	}
	return columns
}

// TestDerivedOutputs compares the class, and the numbers of ordinal labels, with what `predict` writes. A sample with
// NaN or an infinite feature has no prediction.
func TestDerivedOutputs(t *testing.T) {
	o := generate.Options{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1}
	for name, kind := range map[string]dataset.LabelType{
		"class": {Classes: true}, "scale": {Scale: &dataset.Scale{Low: 10, True: dataset.TrueExpected}},
	} {
		for _, algorithm := range []string{"rf", "sa-bfgs"} {
			m := train(t, o, kind, algorithm, nil)
			g, properties := graphOf(t, m)
			s := samplesFor(g, 5, 200)
			want := predicted(t, m, s)
			s.values = append(s.values, 0, 1, float32(math.NaN()), 1, 0, float32(math.Inf(1)), 0, 0, 0, 0)
			x := made(graph.Float32, 202, 5)
			for i, v := range s.values {
				x.v[i] = float64(v)
			}
			outputs := interpret(t, g, map[graph.Value]*tensor{inputFeatures: x})
			columns := []graph.Value{outputExpected, outputMedian, outputMode}
			if name == "class" {
				columns = []graph.Value{outputClass}
			}
			if len(outputs) != 1+len(columns) {
				t.Errorf("the outputs are %v", g.Outputs)
			}
			for _, column := range columns {
				for i, text := range want[string(column)] {
					got := outputs[column].v[i]
					number, err := strconv.ParseFloat(text, 64)
					if name == "class" {
						got, number, err = 0, truth(text != m.Labels()[int(got)]), nil
					}
					if err != nil || math.Abs(got-number) > 4e-6 {
						t.Errorf("%s of sample %d: %v, want %s", column, i, outputs[column].v[i], text)
					}
				}
				for _, v := range outputs[column].v[200:] {
					if name == "class" && v != -1 || name == "scale" && v == v {
						t.Errorf("the %s of an invalid sample is %v", column, v)
					}
				}
			}
			for i, v := range outputs[outputPredictions].v {
				if (v != v) != (i >= 200*4) {
					t.Fatalf("value %d of the predictions is %v", i, v)
				}
			}
			if !strings.Contains(properties["label_names"], m.Labels()[3]) || properties["label_type"] == "{}" {
				t.Errorf("the properties are %v", properties)
			}
		}
	}
}

// writeTable writes a CSV file with a number, a category, a number with gaps, a category and labels.
func writeTable(t testing.TB, gaps bool) string {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	b.WriteString("age,colour,mass,kind,label_a,label_b,label_c\n")
	for i := range 120 {
		mass := fmt.Sprint(float32(random.NormFloat64()))
		if gaps && i%5 == 0 {
			mass = ""
		}
		p := random.Float64()
		fmt.Fprintf(&b, "%d,%s,%s,%s,%v,%v,0\n", random.IntN(90), []string{"red", "green", "dark blue"}[i%3], mass,
			[]string{"x", "y"}[i/3%2], p, 1-p)
	}
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCategories: the graph reads categories as texts and missing features as NaN, and predicts as `predict` does.
func TestCategories(t *testing.T) {
	for _, missing := range []dataset.Missing{{}, {By: dataset.FillMean}, {By: dataset.FillMedian},
		{Fill: true, Value: 2}} {
		path := writeTable(t, !missing.Refuses())
		options := read.OpenOptions{Missing: missing, CSV: read.CSVOptions{Categories: []string{"colour", "kind"}}}
		src, err := read.Open(path, options)
		if err != nil {
			t.Fatal(err)
		}
		data, shards := datatest.Build(t, src)
		j, err := spec.Resolve(protocol.Spec{Algorithm: "sa-bfgs", TestFraction: 0.1}, data)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := local.Run(t.Context(), j, &local.Data{Manifest: data, Shards: shards}, local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := predict.Decode(outcome.Model)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := read.OpenFor(path, read.OpenOptions{NoLabels: true, Missing: missing}, m.Schema())
		if err != nil {
			t.Fatal(err)
		}
		want := predicted(t, m, again)
		g, properties := graphOf(t, m)
		if names := properties["feature_names"]; names != `["age","mass"]` {
			t.Errorf("the features without categories are %s", names)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		n := len(records) - 1
		numbers, colour, kind := made(graph.Float32, n, 2), &tensor{kind: graph.String, dims: []int{n, 1}}, &tensor{
			kind: graph.String, dims: []int{n, 1}}
		for i, r := range records[1:] {
			for k, field := range []string{r[0], r[2]} {
				v, err := strconv.ParseFloat(field, 32)
				if err != nil {
					v = math.NaN()
				}
				numbers.v[2*i+k] = v
			}
			colour.s, kind.s = append(colour.s, r[1]), append(kind.s, r[3])
		}
		p := interpret(t, g, map[graph.Value]*tensor{inputFeatures: numbers, "category_colour": colour,
			"category_kind": kind})[outputPredictions]
		for c, label := range m.Labels() {
			for i, text := range want[label] {
				if v, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(v-p.v[3*i+c]) > 1e-6 {
					t.Fatalf("%v: sample %d has %v for %s, want %s", missing, i, p.v[3*i+c], label, text)
				}
			}
		}
	}
}

// TestSameFile: a model is always written with the same bytes.
func TestSameFile(t *testing.T) {
	o := generate.Options{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1}
	m := train(t, o, dataset.LabelType{}, "ensemble", small["ensemble"][0])
	var first, second bytes.Buffer
	if err := ONNX(&first, m); err != nil {
		t.Fatal(err)
	}
	if err := ONNX(&second, m); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the second file differs: %v", err)
	}
}

// TestTooLarge: a file of more than 2 GiB is refused, and nothing is written.
func TestTooLarge(t *testing.T) {
	b, v := graph.New(), make([]float32, 1<<24)
	for range 32 {
		b.F32(v, len(v))
	}
	var file bytes.Buffer
	if err := writeONNX(&file, b.Graph, "", nil); !errors.Is(err, graph.ErrNone) || file.Len() > 0 {
		t.Errorf("%d bytes are written: %v", file.Len(), err)
	}
}
