package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panel is one picture of a dashboard.
type panel struct {
	title       string
	description string // what it says, and what to do about it
	unit        string // of package units
	columns     uint32 // of the dashboard's width
	number      bool   // the value of now in place of a curve
	none        string // what a number shows where Prometheus has no value
	top         float64
	colours     []limit // of a number; none: always the same
	queries     []query
}

// query is what a panel asks Prometheus.
type query struct {
	expr   string
	legend string // with {{label}} for a label's value
}

// limit is a value from which on a number has another colour; the colour of the first one
// also holds for every smaller value.
type limit struct {
	from   float64
	colour string
}

// build makes the panel.
func (p panel) build(id uint32) cog.Builder[dashboard.Panel] {
	if p.number {
		return p.numbers(id)
	}
	return p.curves(id)
}

func (p panel) curves(id uint32) cog.Builder[dashboard.Panel] {
	b := timeseries.NewPanelBuilder().Id(id).Title(p.title).Description(p.description).Unit(p.unit).
		Datasource(source()).Span(p.columns).Height(curvesHigh).Min(0).
		FillOpacity(8).LineWidth(1).ShowPoints(common.VisibilityModeAuto).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.top > 0 {
		b = b.Max(p.top)
	}
	for i, q := range p.queries {
		b = b.WithTarget(q.build(i).Range())
	}
	return b
}

func (p panel) numbers(id uint32) cog.Builder[dashboard.Panel] {
	b := stat.NewPanelBuilder().Id(id).Title(p.title).Description(p.description).Unit(p.unit).
		Datasource(source()).Span(p.columns).Height(numberHigh).
		Orientation(common.VizOrientationAuto).
		GraphMode(common.BigValueGraphModeNone).
		ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(p.steps()))
	if p.none != "" {
		b = b.NoValue(p.none)
	}
	for i, q := range p.queries {
		b = b.WithTarget(q.build(i).Instant())
	}
	return b
}

// steps are the colours of a number, the first one from minus infinity.
func (p panel) steps() []dashboard.Threshold {
	steps := []dashboard.Threshold{{Color: "text"}}
	for i, l := range p.colours {
		if i == 0 {
			steps[0].Color = l.colour
			continue
		}
		steps = append(steps, dashboard.Threshold{Value: &l.from, Color: l.colour})
	}
	return steps
}

func (q query) build(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().
		RefId(string(rune('A' + i))).
		Datasource(source()).
		Expr(q.expr).
		LegendFormat(q.legend).
		EditorMode(prometheus.QueryEditorModeCode).
		Format(prometheus.PromQueryFormatTimeSeries)
}

// each is a query with a filter of the processes that are chosen; %s stands for it.
func each(format, legend string) query {
	const filter = `instance=~"$instance"`
	return query{fmt.Sprintf(format, filter), legend}
}
