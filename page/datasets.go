package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// namesAtOnce is how many names of features, labels or groups are shown at once.
	namesAtOnce = 100
	// barsAtOnce bounds the bars of a histogram. Neighbours share a bar if there are more labels.
	barsAtOnce = 120
	// jobsOfDataset is how many jobs the page of a dataset lists.
	jobsOfDataset = 5
)

// datasetsView lists datasets.
func datasetsView(v *visit) (*view, error) {
	var data struct {
		list
		Datasets []datasetLine
	}
	var query url.Values
	data.list, query = newList(v)
	var answer []protocol.Dataset
	after, err := v.api.part(v.Context(), "/v1/datasets", query, &answer)
	if err != nil {
		return nil, err
	}
	for i := range answer {
		if answer[i].Manifest == nil {
			answer[i].Manifest = new(dataset.Manifest)
		}
		data.Datasets = append(data.Datasets, datasetLine{&answer[i]})
	}
	data.follow(after)
	return &view{Title: "Datasets", Section: "datasets", Template: "datasets", Data: &data}, nil
}

// datasetLine is a dataset with what a template computes from it.
type datasetLine struct{ *protocol.Dataset }

// LabelsAre says what the labels are.
func (d datasetLine) LabelsAre() string { return d.Manifest.LabelType.String(d.Manifest.Labels) }

// datasetPage is what the page of a dataset shows.
type datasetPage struct {
	datasetLine
	Features, Labels names
	Histogram        *histogram
	Jobs             []protocol.JobInfo
	JobCount         int
}

// NonZero is the percentage of features that are not zero.
func (p *datasetPage) NonZero() string { return formatNumber(100*p.Manifest.Density()) + " %" }

// names is a part of a list of features or labels.
type names struct {
	Names            []named
	First, Last, All int // from 1
	After            url.Values
}

// named is a feature or label.
type named struct {
	Name  string
	Value string // of a label: its mean probability
}

// namesOf returns the part of a list from number from on. key is the parameter of the page that names it.
func namesOf(all, from int, key string, of func(i int) named) names {
	from = min(from, max(0, all-1))
	n := names{First: from + 1, Last: min(all, from+namesAtOnce), All: all}
	for i := from; i < n.Last; i++ {
		n.Names = append(n.Names, of(i))
	}
	if n.Last < all {
		n.After = url.Values{key: {strconv.Itoa(n.Last)}}
	}
	return n
}

// datasetView shows a dataset: its columns, its labels and how to use it.
func datasetView(v *visit) (*view, error) {
	name := v.PathValue("name")
	p := &datasetPage{datasetLine: datasetLine{new(protocol.Dataset)}}
	if err := v.get("/v1/datasets/"+url.PathEscape(name), nil, p.Dataset); err != nil {
		return nil, err
	}
	m := p.Manifest
	if m == nil {
		return nil, &Error{Status: http.StatusInternalServerError, Text: "The description of the dataset is missing."}
	}
	var jobs protocol.JobList
	if err := v.get("/v1/jobs", url.Values{"dataset": {name}, "limit": {strconv.Itoa(jobsOfDataset)}}, &jobs); err != nil {
		return nil, err
	}
	p.Jobs, p.JobCount = jobs.Jobs, jobs.Total
	feature, err := place(v.URL.Query(), "feature")
	if err != nil {
		return nil, err
	}
	label, err := place(v.URL.Query(), "label")
	if err != nil {
		return nil, err
	}
	p.Features = namesOf(len(m.FeatureNames), feature, "feature", func(i int) named {
		return named{Name: m.FeatureName(i)}
	})
	p.Labels = namesOf(m.Labels, label, "label", func(i int) named {
		n := named{Name: m.LabelName(i)}
		if i < len(m.MeanLabel) {
			n.Value = formatNumber(m.MeanLabel[i])
		}
		return n
	})
	p.Histogram = newHistogram(m)
	return &view{Title: name, Section: "datasets", Template: "dataset", Data: p, Still: true}, nil
}

// histogram is a picture of the mean label distribution. Positions are in units of the view box of a chart.
type histogram struct {
	Title, XLabel, YLabel string
	YTicks                []tick
	Bars                  []bar
	Width                 string // of a bar
}

// bar is a bar of a histogram: of a label, or of several that follow each other.
type bar struct {
	X, Y, Height, Middle string
	Title                string
	Text                 string // below the bar; empty: there is no room
}

// newHistogram returns the histogram of the labels of a dataset; nil: it is not known.
func newHistogram(m *dataset.Manifest) *histogram {
	n := min(len(m.MeanLabel), m.Labels)
	if n < 2 {
		return nil
	}
	h := &histogram{Title: "Mean label distribution", XLabel: "label", YLabel: "mean probability"}
	switch {
	case m.LabelType.Classes:
		h.Title, h.YLabel = "Fraction of the samples of each class", "fraction"
	case m.LabelType.Bounds != nil:
		h.Title, h.YLabel = "Mean of each target", "mean"
	}
	together := (n + barsAtOnce - 1) / barsAtOnce
	var values []float64
	ys := span{}
	for from := 0; from < n; from += together {
		sum := 0.0
		for _, v := range m.MeanLabel[from:min(n, from+together)] {
			sum += v
		}
		values = append(values, sum)
		ys.add(sum)
	}
	if !(ys.hi > ys.lo) || ys.hi-ys.lo > maxBar {
		return nil
	}
	up := func(v float64) float64 { return marginTop + plotHeight*(1-(v-ys.lo)/(ys.hi-ys.lo)) }
	for _, v := range ticks(ys, ticksUp) {
		h.YTicks = append(h.YTicks, tick{up(v), formatTick(v)})
	}
	slot := float64(plotWidth) / float64(len(values))
	h.Width = position(slot * barFraction)
	apart := 1 + len(values)/textsAcross
	for i, v := range values {
		first, last := i*together, min(n, (i+1)*together)-1
		x := marginLeft + slot*(float64(i)+(1-barFraction)/2)
		b := bar{X: position(x), Y: position(up(max(v, 0))), Height: position(up(min(v, 0)) - up(max(v, 0))),
			Middle: position(x + slot*barFraction/2), Title: m.LabelName(first) + ": " + formatNumber(v)}
		if together > 1 {
			b.Title = fmt.Sprintf("%s to %s: %s", m.LabelName(first), m.LabelName(last), formatNumber(v))
		}
		if i%apart == 0 {
			b.Text = shortened(m.LabelName(first), min(maxText, int(float64(apart)*slot/letterWidth)))
		}
		h.Bars = append(h.Bars, b)
	}
	return h
}

// The sizes of a histogram.
const (
	barFraction = 0.8
	textsAcross = 24
	letterWidth = 7 // of a text below a bar
	maxText     = 16
	maxBar      = 1e12
)

// position formats a position in a picture.
func position(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// shortened returns a text of at most n letters.
func shortened(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= n {
		return text
	}
	return string(letters[:max(1, n-1)]) + "…"
}
