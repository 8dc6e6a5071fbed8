package metrics

import (
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write the tables of METRICS.md anew")

// both returns the registries of a coordinator and of a worker in which every
// series exists.
func both() (c *Coordinator, w *Worker, coordinator, worker *prometheus.Registry) {
	coordinator, worker = prometheus.NewRegistry(), prometheus.NewRegistry()
	c, w = NewCoordinator(coordinator), NewWorker(worker)
	c.Loss.WithLabelValues("job-1").Set(0.1)
	c.Progress.WithLabelValues("job-1").Set(0.5)
	c.Interval.WithLabelValues("job-1").Set(0.2)
	c.RaftRoundTrip.WithLabelValues("b").Set(0.001)
	c.JobSteps.WithLabelValues("job-1").Set(50)
	c.Moved.WithLabelValues("job-1").Set(1.7e9)
	c.TaskSeconds.Observe("step", 0.1)
	c.Shares.Add("w1", 1, time.Second, time.Now())
	c.RaftLag.WithLabelValues("b").Set(1)
	c.Requests.Add("GET /v1/jobs", 200, time.Millisecond, false)
	w.TaskSeconds.Observe("step", 0.1)
	return c, w, coordinator, worker
}

// read returns what a collector shows.
func read(c prometheus.Collector) []*dto.Metric {
	ch := make(chan prometheus.Metric, 100)
	c.Collect(ch)
	close(ch)
	var all []*dto.Metric
	for m := range ch {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			panic(err)
		}
		all = append(all, &d)
	}
	return all
}

func series(c prometheus.Collector) int { return len(read(c)) }

// value returns the value of a counter or gauge.
func value(c prometheus.Collector) float64 {
	m := read(c)[0]
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func TestLint(t *testing.T) {
	_, _, coordinator, worker := both()
	for _, reg := range []*prometheus.Registry{coordinator, worker} {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Every field that is an instrument is made and registered.
func TestEveryFieldIsRegistered(t *testing.T) {
	c, w, coordinator, worker := both()
	for _, x := range []struct {
		m   any
		reg *prometheus.Registry
	}{{*c, coordinator}, {*w, worker}} {
		fields := instruments(t, reflect.ValueOf(x.m))
		families, err := x.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		// The five phases are one family, shares and requests are two each, and the
		// build has no field.
		if _, ok := x.m.(Coordinator); ok {
			fields += 2 - 4
		}
		if got := len(families) - 1; got != fields {
			t.Errorf("%T: %d fields, %d families", x.m, fields, got)
		}
	}
}

func instruments(t *testing.T, v reflect.Value) int {
	n := 0
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case name == "set":
		case name == "Traffic", name == "Budget", name == "Security":
			n += instruments(t, f)
		case f.IsNil():
			t.Errorf("%s is not made", name)
		default:
			n++
		}
	}
	return n
}

func TestTwoInOneProcess(t *testing.T) {
	reg := prometheus.NewRegistry()
	NewCoordinator(reg)
	defer func() {
		if recover() == nil {
			t.Error("the same instruments twice in one registry")
		}
	}()
	NewCoordinator(reg)
}

func TestRaftState(t *testing.T) {
	c, _, _, _ := both()
	c.SetRaftState("candidate")
	c.SetRaftState("leader")
	for _, s := range raftStates {
		want := 0.0
		if s == "leader" {
			want = 1
		}
		if got := value(c.raftState.WithLabelValues(s)); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func TestForgetJob(t *testing.T) {
	c, _, _, _ := both()
	c.Loss.WithLabelValues("job-2").Set(1)
	c.ForgetJob("job-1")
	if n := series(c.Loss); n != 1 {
		t.Errorf("%d series of loss", n)
	}
	if n := series(c.Progress); n != 0 {
		t.Errorf("%d series of progress", n)
	}
	c.ForgetJob("")
	if n := series(c.Loss); n != 0 {
		t.Errorf("%d series of loss after all were forgotten", n)
	}
}

func TestTraffic(t *testing.T) {
	c, _, _, _ := both()
	c.Sent(3)
	c.Sent(4)
	c.Received(5)
	c.Reconnected()
	c.Disconnected()
	for want, m := range map[float64]prometheus.Collector{7: c.NATSSent, 5: c.NATSReceived} {
		if got := value(m); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if value(c.NATSReconnects) != 1 || value(c.NATSDisconnects) != 1 {
		t.Error("connections are not counted")
	}
}

func TestHandlerReadsGaugesOnScrape(t *testing.T) {
	reg := Registry()
	w := NewWorker(reg)
	n := 0
	w.OnScrape(func() { n++; w.Shards.Set(float64(n)) })
	body := ""
	for range 2 {
		rec := httptest.NewRecorder()
		Handler(reg).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		b, err := io.ReadAll(rec.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(b)
	}
	for _, want := range []string{"\ncoppice_worker_shards 2\n", "\ngo_goroutines ", "role=\"worker\""} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	w.OnScrape(nil)
	if _, err := reg.Gather(); err != nil || n != 2 {
		t.Errorf("called %d times, %v", n, err)
	}
}

// METRICS.md has every series, with its type, labels and help, and no other.
func TestDocument(t *testing.T) {
	_, _, coordinator, worker := both()
	const path = "METRICS.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for title, reg := range map[string]*prometheus.Registry{"coordinator": coordinator, "worker": worker} {
		doc = replaceTable(t, doc, title, table(t, reg))
	}
	if *update {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if doc != string(b) {
		t.Errorf("%s is behind the code; go test ./metrics -run TestDocument -update mends it", path)
	}
}

// table lists the instruments of a registry.
func table(t *testing.T, reg *prometheus.Registry) string {
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range families {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labels(f),
			f.GetHelp())
	}
	return b.String()
}

// labels lists the names of a family's labels, with the values that are fixed.
func labels(f *dto.MetricFamily) string {
	values := make(map[string][]string)
	var names []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if values[l.GetName()] == nil {
				names = append(names, l.GetName())
			}
			values[l.GetName()] = append(values[l.GetName()], l.GetValue())
		}
	}
	for i, n := range names {
		if v := values[n]; len(v) > 1 {
			names[i] = fmt.Sprintf("%s: %s", n, strings.Join(v, ", "))
		}
	}
	return strings.Join(names, ", ")
}

// replaceTable puts a table under the heading that ends with title.
func replaceTable(t *testing.T, doc, title, table string) string {
	re := regexp.MustCompile(`(?s)(## [^\n]*` + title + `\n\n)\| name .*?\n(\n|$)`)
	if !re.MatchString(doc) {
		t.Fatalf("no table for the %s", title)
	}
	return re.ReplaceAllStringFunc(doc, func(old string) string {
		m := re.FindStringSubmatch(old)
		return m[1] + table + m[2]
	})
}

// TestOpenMetrics: a client that accepts OpenMetrics gets it, with the same names of samples.
func TestOpenMetrics(t *testing.T) {
	reg := Registry()
	NewWorker(reg)
	names := make(map[bool]string)
	for _, open := range []bool{true, false} {
		r, rec := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		if open {
			r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		}
		Handler(reg).ServeHTTP(rec, r)
		body := rec.Body.String()
		if got := strings.HasPrefix(rec.Header().Get("Content-Type"), "application/openmetrics-text"); got != open ||
			strings.HasSuffix(body, "# EOF\n") != open {
			t.Errorf("accepts OpenMetrics: %v, got %v\n%s", open, rec.Header(), body)
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "coppice_") {
				name, _, _ := strings.Cut(line, " ")
				names[open] += name + "\n"
			}
		}
	}
	if names[true] != names[false] || names[true] == "" {
		t.Errorf("OpenMetrics has the samples\n%s, text has\n%s", names[true], names[false])
	}
}
