package page

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestHistogram: the heights of bars are proportional to the mean label distribution, and neighbours share a bar if
// there are many labels.
func TestHistogram(t *testing.T) {
	for _, labels := range []int{2, 7, barsAtOnce, barsAtOnce + 1, 1000} {
		m := &dataset.Manifest{Labels: labels}
		sum := float64(labels) * float64(labels+1) / 2
		for i := range labels {
			m.MeanLabel = append(m.MeanLabel, float64(i+1)/sum)
		}
		h := newHistogram(m)
		total, highest := 0.0, 0.0
		for _, b := range h.Bars {
			height, err := strconv.ParseFloat(b.Height, 64)
			y, err2 := strconv.ParseFloat(b.Y, 64)
			if err != nil || err2 != nil || math.Abs(y+height-marginTop-plotHeight) > .11 {
				t.Fatalf("%d labels: %+v", labels, b)
			}
			total, highest = total+height, max(highest, height)
		}
		together := (labels + barsAtOnce - 1) / barsAtOnce
		if want := (labels + together - 1) / together; len(h.Bars) != want || len(h.Bars) > barsAtOnce {
			t.Errorf("%d labels: %d bars, want %d", labels, len(h.Bars), want)
		}
		last := 0.0
		for i := (len(h.Bars) - 1) * together; i < labels; i++ {
			last += m.MeanLabel[i]
		}
		most := last
		if len(h.Bars) > 1 {
			before := 0.0
			for i := (len(h.Bars) - 2) * together; i < (len(h.Bars)-1)*together; i++ {
				before += m.MeanLabel[i]
			}
			most = max(most, before)
		}
		if math.Abs(highest-plotHeight) > .11 || math.Abs(total/highest-1/most) > .01/most {
			t.Errorf("%d labels: heights add up to %v, the highest is %v; want a ratio of %v", labels, total, highest, 1/most)
		}
	}
	for _, mean := range [][]float64{nil, {1}, {0, 0}, {math.NaN(), 1}, {math.Inf(1), 0}, {1e300, -1e300}} {
		if h := newHistogram(&dataset.Manifest{Labels: len(mean), MeanLabel: mean}); h != nil && len(mean) < 2 {
			t.Errorf("%v: %+v", mean, h)
		} else if h != nil && strings.Contains(fmt.Sprint(h), "NaN") {
			t.Errorf("%v: %+v", mean, h)
		}
	}
}

// TestDatasetNames: long lists of features and labels are shown in parts.
func TestDatasetNames(t *testing.T) {
	m := &dataset.Manifest{Rows: 10, Features: 2500, Labels: 250}
	for i := range m.Features {
		m.FeatureNames = append(m.FeatureNames, fmt.Sprintf("feature-%d.", i))
	}
	for i := range m.Labels {
		m.LabelNames, m.MeanLabel = append(m.LabelNames, fmt.Sprintf("label-%d.", i)), append(m.MeanLabel, .004)
	}
	api := fakeAPI{"/v1/datasets/art": protocol.Dataset{Name: "art", Digest: "0123", Manifest: m},
		"/v1/jobs": protocol.JobList{}}
	body := open(t, api, "/ui/datasets/art")
	contains(t, body, []string{"feature-0.", "feature-99.", "label-99.", "2500", "?feature=100", "?label=100",
		"coppice job submit --dataset art"}, "feature-100.", "<th scope=\"row\">label-100.")
	if len(body) > 60_000 {
		t.Errorf("the page has %d bytes", len(body))
	}
	contains(t, open(t, api, "/ui/datasets/art?feature=2400&label=200"), []string{"feature-2499.", "label-249."},
		"feature-2399.", "?feature=")
	contains(t, open(t, api, "/ui/datasets/art?feature=9999"), []string{"feature-2499."})
}

// TestPrivateModels: a page says that a model is private, and has no link to its file, for callers who may not read it.
// Only who may delete a model is asked.
func TestPrivateModels(t *testing.T) {
	m := protocol.ModelInfo{Name: "forest/1", Job: 7, Ownership: protocol.Ownership{Owner: "adam", Private: true}}
	deleted := ""
	api := fakeAPI{"/v1/models": []protocol.ModelInfo{m}, "/v1/jobs/7": protocol.JobInfo{ID: 7, Name: "forest",
		Models: make([]protocol.ModelRef, 5), Ownership: m.Ownership}}
	api["/v1/models/forest"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deleted = r.Method + " " + r.URL.Path
		json.NewEncoder(w).Encode(protocol.JobInfo{})
	})
	h := Handler(Config{API: api})
	const file, gone = "/ui/download/models/forest/1", "/ui/models/forest/1?delete=true"
	for _, c := range []struct {
		caller      access.Caller
		reads, owns bool
	}{{access.Caller{Name: "eve", Role: rights.Submit}, false, false}, {access.Caller{Name: "adam", Role: rights.Read},
		true, false}, {access.Caller{Name: "adam", Role: rights.Submit}, true, true}, {admin, true, true}} {
		_, list, _ := visitAs(h, c.caller, "GET", "/ui/models", "")
		status, card, _ := visitAs(h, c.caller, "GET", "/ui/models/forest/1", "")
		if got := strings.Contains(card, file); status != http.StatusOK || got != c.reads ||
			strings.Contains(list, file) != got || strings.Contains(card, "This model is private") == c.reads {
			t.Errorf("%v: status %d, link %v:\n%s", c.caller, status, got, card)
		}
		status, ask, _ := visitAs(h, c.caller, "GET", gone, "")
		if strings.Contains(card, gone) != c.owns || (status == http.StatusOK) != c.owns ||
			c.owns && !strings.Contains(ask, "all 5 models of the job forest") {
			t.Errorf("%v may delete: want %v, status %d:\n%s", c.caller, c.owns, status, ask)
		}
	}
	status, _, header := visitAs(h, admin, "POST", "/ui/models/forest/1", "")
	if status != http.StatusSeeOther || header.Get("Location") != "/ui/models" || deleted != "DELETE /v1/models/forest" {
		t.Errorf("status %d, to %q, made the request %q", status, header.Get("Location"), deleted)
	}
	if status, body, _ := visitAs(h, admin, "GET", "/ui/models/other", ""); status != http.StatusNotFound ||
		!strings.Contains(body, "There is no model") {
		t.Errorf("status %d: %s", status, body)
	}
}
