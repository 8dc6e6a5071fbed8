package traincmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
)

// AlgorithmCmd is `coppice algorithm`.
type AlgorithmCmd struct {
	List algorithmListCmd `cmd:"" help:"List the algorithms."`
	Show algorithmShowCmd `cmd:"" help:"Show what an algorithm is, when to use it, its paper and its settings."`
}

// algorithmInfo describes an algorithm, as -o json prints it.
type algorithmInfo struct {
	Name        string `json:"name"`
	Class       string `json:"class"` // of the Python library
	Summary     string `json:"summary"`
	Description string `json:"description"`
	When        string `json:"when"`
	Paper       string `json:"paper,omitempty"`
	Predicts    string `json:"predicts"`

	Measured []registry.Measurement `json:"measured,omitempty"`
}

func infoOf(a algorithms.Algorithm) algorithmInfo {
	about := a.About()
	return algorithmInfo{Name: a.Name(), Class: about.Class, Summary: about.Summary, Description: a.Doc(),
		When: about.When, Paper: about.Paper, Predicts: a.Predicts().String(), Measured: registry.Measured(a.Name())}
}

type algorithmListCmd struct{}

// Run implements `coppice algorithm list`.
func (algorithmListCmd) Run(a *cli.App) error {
	var all []algorithmInfo
	for _, one := range registry.All() {
		all = append(all, infoOf(one))
	}
	return a.Print(all, func(w io.Writer) {
		cli.WriteTable(w, []string{"name", "what it is", "paper"}, all, func(one algorithmInfo) []string {
			authors, _, _ := strings.Cut(one.Paper, ", \"")
			return []string{one.Name, one.Summary, authors}
		})
		fmt.Fprintf(w, "\n%s\n\n", wrapped(measuredText, ""))
		measuredTable(w, all).Render()
		fmt.Fprintf(w, "\ncoppice algorithm show NAME describes an algorithm and lists its settings.\n"+
			"--algorithm %s trains the best of several algorithms; coppice algorithm show %[1]s describes it.\n", spec.Best)
	})
}

const measuredText = `K-L on test samples and CPU seconds by the number of training samples. The data are of "coppice dataset generate --kind smooth", which suits linear functions and networks; other data give another order. Training used one thread.`

// measuredTable is the table of the accuracy and the time of algorithms by number of samples.
func measuredTable(w io.Writer, all []algorithmInfo) table.Writer {
	header, baseline := []string{"name"}, []string{"mean baseline"}
	for i, n := range registry.MeasuredSamples {
		header = append(header, "K-L, "+units.Count(n), "seconds")
		baseline = append(baseline, fmt.Sprintf("%.4f", registry.MeanBaselineKL[i]), "")
	}
	t := cli.NewTable(w, header, 2, 3, 4, 5, 6, 7)
	for _, one := range all {
		if len(one.Measured) == 0 {
			continue
		}
		row := []string{one.Name}
		for _, m := range one.Measured {
			row = append(row, fmt.Sprintf("%.4f", m.KL), fmt.Sprintf("%.3g", m.CPUSeconds))
		}
		for len(row) < len(header) {
			row = append(row, "-", "-")
		}
		t.AppendRow(cli.Row(row...))
	}
	t.AppendRow(cli.Row(baseline...))
	return t
}

type algorithmShowCmd struct {
	Name string `arg:"" algorithms:"" help:"Name of the algorithm, such as ldlf."`
}

// Run implements `coppice algorithm show`.
func (c *algorithmShowCmd) Run(a *cli.App) error {
	one, err := spec.Choice(c.Name)
	if err != nil {
		return cli.Usage(err)
	}
	v := struct {
		algorithmInfo
		Preset   string          `json:"preset,omitempty"` // of a job without a preset; empty: there are no presets
		Settings []settingDetail `json:"settings"`
	}{algorithmInfo: infoOf(one)}
	for _, p := range one.Params() {
		if p.Name == "preset" {
			v.Preset = p.Default
		}
		v.Settings = append(v.Settings, detailOf(&p))
	}
	return a.Print(v, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n\n", wrapped(v.Name+": "+v.Description+".", ""))
		paper := v.Paper
		if paper == "" {
			paper = "none"
		}
		pairs := [][2]string{{"when to use it", v.When}, {"paper", paper}, {"predicts", v.Predicts}}
		if v.Preset != "" {
			pairs = append(pairs, [2]string{"preset", v.Preset + ", if none is given"})
		}
		cli.WritePairs(w, pairs)
		fmt.Fprintln(w, "\nSettings, for --set NAME=VALUE and spec files:")
		marked := false
		for _, s := range v.Settings {
			s.text(w, v.Preset != "")
			marked = marked || s.InPaper
		}
		if marked {
			fmt.Fprintln(w, "\n* This value is from the paper.")
		}
	})
}

// settingDetail describes a setting, as `algorithm show -o json` prints it.
type settingDetail struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`   // integer, number, boolean, word or text
	Values  string   `json:"values"` // in words
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
	Words   []string `json:"words,omitempty"`
	Auto    string   `json:"auto"`     // the default of preset auto
	Paper   string   `json:"paper"`    // the default of preset paper
	InPaper bool     `json:"in_paper"` // true if the value of preset paper is in the paper
	Doc     string   `json:"doc"`
}

func detailOf(p *param.Param) settingDetail {
	d := settingDetail{
		Name: p.Name, Type: "text", Values: p.Wanted(), Words: p.Words,
		Auto: p.Of("auto"), Paper: p.Of("paper"), InPaper: p.InPaper, Doc: p.Doc,
	}
	if p.Name == "preset" {
		d.Auto, d.Paper = "auto", "paper"
	}
	switch p.Kind {
	case param.KindInt:
		d.Type, d.Min, d.Max = "integer", &p.Min, &p.Max
	case param.KindFloat:
		d.Type, d.Min, d.Max = "number", &p.Min, &p.Max
	case param.KindBool:
		d.Type = "boolean"
	case param.KindWord:
		d.Type = "word"
	}
	return d
}

// text writes a setting: its description, its values and its defaults. presets is true if the algorithm has presets.
func (s *settingDetail) text(w io.Writer, presets bool) {
	const indent = "      "
	fmt.Fprintf(w, "\n  %s\n%s\n%s\n", s.Name, wrapped(s.Doc, indent), wrapped("values: "+s.Values, indent))
	mark := ""
	if s.InPaper {
		mark = " *"
	}
	switch {
	case s.Name == "preset": // its default is printed above
	case !presets:
		fmt.Fprintln(w, wrapped("default: "+s.Auto, indent))
	case s.Auto == s.Paper:
		fmt.Fprintln(w, wrapped("preset auto and preset paper: "+s.Auto+mark, indent))
	default:
		fmt.Fprintf(w, "%s\n%s\n", wrapped("preset auto: "+s.Auto, indent), wrapped("preset paper: "+s.Paper+mark, indent))
	}
}

// helpWidth is the greatest width of lines that describe settings.
const helpWidth = 100

// wrapped breaks a text into lines, each with the indent before it.
func wrapped(s, indent string) string {
	lines := strings.Split(text.WrapSoft(s, helpWidth-len(indent)), "\n")
	for i, l := range lines {
		lines[i] = indent + strings.TrimSpace(l)
	}
	return strings.Join(lines, "\n")
}
