package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	width      = 24 // of a dashboard, in Grafana's columns
	numberHigh = 4  // of a panel of numbers, in Grafana's rows
	curvesHigh = 8  // of a panel of curves
)

// row is a question, with the panels that answer it.
type row struct {
	title  string
	panels []panel
}

// rows lists the questions in the order in which somebody on call asks them.
func rows() []row { return []row{progress(), workers(), raft(), traffic(), host()} }

// build makes the dashboard.
func build(rows []row) (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder("Coppice").
		Uid("coppice").
		Description("A Coppice cluster: its jobs, its workers, Raft, and what it costs. Made by deploy/grafana/generate; changes made here are lost.").
		Tags([]string{"coppice"}).
		Time("now-30m", "now").
		Refresh("10s").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(datasource()).
		WithVariable(choice("name", "Job", "The jobs whose progress is shown.", "label_values(coppice_job_progress_ratio, name)")).
		WithVariable(choice("instance", "Process", "The coordinators and workers that are shown, as host and port.", "label_values(coppice_build_info, instance)"))
	id := uint32(0)
	for _, r := range rows {
		id++
		d = d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, p := range r.panels {
			id++
			d = d.WithPanel(p.build(id))
		}
	}
	return d.Build()
}

// datasource is the variable by which a Prometheus is chosen.
func datasource() *dashboard.DatasourceVariableBuilder {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Prometheus").
		Description("The Prometheus that scrapes the cluster.").
		Type("prometheus")
}

// choice is a variable with the values of a label, all of them at first.
func choice(name, label, description, query string) *dashboard.QueryVariableBuilder {
	all, value := "All", "$__all"
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Description(description).
		Datasource(source()).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(".*").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{all}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{value}},
		})
}

// source is the data source that is chosen.
func source() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}
