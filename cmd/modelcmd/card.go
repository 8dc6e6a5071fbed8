package modelcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/export"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
)

// cardFlags are what a model card says that a model file does not know.
type cardFlags struct {
	CardName    string `name:"card-name" placeholder:"NAME" help:"Name of the model in its card (default: the name of the file)."`
	License     string `placeholder:"ID" help:"License of the model in its card, such as apache-2.0 (default: the card names none)."`
	DatasetName string `name:"dataset-name" placeholder:"NAME" help:"Name of the dataset in the card (default: its name on the cluster, or its digest)."`
}

type cardCmd struct {
	Model  string `arg:"" placeholder:"FILE|NAME" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	Out    string `default:"-" placeholder:"FILE" help:"File to write; - for stdout (default: stdout). Hugging Face shows README.md."`
	Format string `enum:",md,json" default:"" placeholder:"F" help:"Format: md (Markdown with the front matter of Hugging Face) or json (default: from the end of the file's name; md for stdout)."`

	Exported string `placeholder:"FILE" help:"Name of an exported file, such as m.onnx, whose inputs and outputs the card describes (default: inputs and outputs of m.npz, without a name)."`

	cardFlags
	connect.ServerFlags
}

// Run implements `coppice model card`.
func (c *cardCmd) Run(a *cli.App) error {
	if _, ok := export.FormatOf("", c.Exported); c.Exported != "" && !ok {
		return cli.Usagef("{exported=%s}: the name must end in the format, such as m.onnx or m.npz", c.Exported)
	}
	format := c.Format
	if ends := strings.ToLower(filepath.Ext(c.Out)); format == "" && c.Out != cli.Stdout {
		if ends != ".md" && ends != ".json" {
			return cli.Usagef("{out=%s}: the format of the card is unknown; give {format}, or a name that ends in .md or .json",
				c.Out)
		}
		format = ends[1:]
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Model); err != nil {
		return err
	}
	m, dataset, err := loadModel(a, c.Model, &c.ServerFlags)
	if err != nil {
		return err
	}
	card, err := newCard(m, c.Model, dataset, c.Exported, &c.cardFlags)
	if err != nil {
		return err
	}
	if c.Out == cli.Stdout && (a.JSON || format == "json") {
		e := a.Encoder()
		e.SetIndent("", "  ")
		return e.Encode(card)
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	text := card.markdown()
	if format == "json" {
		if text, err = card.json(); err != nil {
			return err
		}
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if err := out.Commit(); err != nil || c.Out == cli.Stdout {
		return err
	}
	r := struct {
		Model  string `json:"model"`
		Digest string `json:"digest"`
		Out    string `json:"out"`
	}{c.Model, m.File.Digest, c.Out}
	return a.Print(r, func(w io.Writer) { fmt.Fprintf(w, "card of %s: %s\n", c.Model, c.Out) })
}

// card is a model card.
type card struct {
	Name      string `json:"name"`
	License   string `json:"license,omitempty"`
	Algorithm string `json:"algorithm"`
	Summary   string `json:"summary"`         // of the algorithm
	Paper     string `json:"paper,omitempty"` // of the algorithm
	Predicts  string `json:"predicts"`
	Digest    string `json:"digest"`
	Version   string `json:"version"`  // of Coppice that trained the model
	Numerics  int    `json:"numerics"` // arithmetic version

	cardFile
	cardAbout
	// HeldOut is true if Measures are of samples that the model was not trained on.
	HeldOut     bool            `json:"held_out"`
	EvaluatedOn string          `json:"evaluated_on"`
	Measures    measures.Report `json:"measures"`
	pipeline.Baselines
	Added    *pipeline.Added `json:"added,omitempty"`
	Commands cardCommands    `json:"commands"`

	shown *modelShown
}

// cardFile is what a card says of the exported file that it describes. File and SHA256, the hash of its bytes, are
// empty if there is none.
type cardFile struct {
	File     string           `json:"file,omitempty"`
	SHA256   string           `json:"sha256,omitempty"`
	Inputs   []export.Array   `json:"inputs"`
	Outputs  []export.Array   `json:"outputs"`
	Examples []export.Example `json:"examples,omitempty"`
}

// cardAbout is what a card says of the data and the training.
type cardAbout struct {
	Data     cardData        `json:"data"`
	Spec     *round.Job      `json:"spec"` // with all resolved hyperparameters
	Steps    uint64          `json:"steps"`
	BestStep uint64          `json:"best_step,omitempty"`
	Samples  pipeline.Counts `json:"samples"`
}

// cardData is what a card says of the data.
type cardData struct {
	Digest       string   `json:"digest"`
	Name         string   `json:"name,omitempty"`
	Samples      int      `json:"samples"`
	Features     int      `json:"features"`
	Labels       int      `json:"labels"`
	LabelsAre    string   `json:"labels_are"`
	FeatureNames []string `json:"feature_names,omitempty"`
	LabelNames   []string `json:"label_names"`
	ReadWith     string   `json:"read_with,omitempty"` // flags
	Missing      string   `json:"missing,omitempty"`
}

// cardCommands are commands about a model. FILE is the data file.
type cardCommands struct {
	Train      string `json:"train"`
	Predict    string `json:"predict"`
	Evaluate   string `json:"evaluate"`
	Verify     string `json:"verify"`
	VerifyData string `json:"verify_data"`
}

// newCard returns the card of a model. of is the file or the name of the model, data is the name of its dataset on the
// cluster, or empty, and exported is the exported file that the card describes, or empty.
func newCard(m *predict.Model, of, data, exported string, f *cardFlags) (*card, error) {
	p, shown := m.Provenance, newModelShown(m, of, data)
	file := filepath.Base(of)
	if f.CardName != "" || filepath.Ext(of) == "" { // a name, not a file
		file = strings.ReplaceAll(cmp.Or(f.CardName, of), "/", "-") + ".model"
	}
	c := &card{
		Name: strings.TrimSuffix(file, filepath.Ext(file)), License: f.License, Algorithm: m.File.Algorithm,
		Predicts: m.Output().String(), Digest: m.File.Digest, Version: p.Version, Numerics: m.File.Numerics,
		HeldOut: p.Rows.Test > 0, EvaluatedOn: p.EvaluatedOn, Measures: p.Measures, Baselines: p.Baselines, Added: p.Added,
		cardAbout: cardAbout{Spec: p.Job, Steps: p.Steps, BestStep: p.BestStep, Samples: p.Rows}, shown: shown,
	}
	c.Data = cardData{
		Digest: p.Job.Dataset, Name: cmp.Or(f.DatasetName, data), Samples: p.Rows.Train + p.Rows.Validation + p.Rows.Test,
		Features: shown.Features, Labels: shown.Labels, LabelsAre: shown.labelsAre(), FeatureNames: p.FeatureNames,
		LabelNames: m.Labels(), ReadWith: dataflags.ReadingFlags(&p.Reading), Missing: p.Missing,
	}
	format, _ := export.FormatOf("", exported)
	if exported != "" {
		c.File = filepath.Base(exported)
	}
	var err error
	if c.Inputs, c.Outputs, err = export.Arrays(m, format.Name); err != nil {
		return nil, err
	}
	if c.Examples, err = export.Examples(m); err != nil {
		return nil, err
	}
	if a, err := registry.Find(m.File.Algorithm); err == nil {
		c.Summary, c.Paper = a.About().Summary, a.About().Paper
	}
	word := shellword.Quote(file)
	c.Commands = cardCommands{
		Train:      repeat(p, "", spec.Settings(p.Job.Params)),
		Predict:    fmt.Sprintf("coppice predict --model %s --data FILE --out predictions.csv", word),
		Evaluate:   fmt.Sprintf("coppice evaluate --model %s --data FILE", word),
		Verify:     fmt.Sprintf("coppice model verify %s --data FILE", word),
		VerifyData: fmt.Sprintf("coppice model verify %s --data FILE --only-data", word),
	}
	return c, nil
}

func (c *card) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(c)
	return b.Bytes(), err
}

// files creates the files of the card. An empty path is no file.
func (c *card) files(markdown, text string) (*cardFiles, error) {
	f := new(cardFiles)
	b, err := c.json()
	if err == nil {
		err = f.add(markdown, c.markdown())
	}
	if err == nil {
		err = f.add(text, b)
	}
	return f, err
}

// frontMatter writes the metadata that Hugging Face reads, as YAML. Measures of samples that the model was trained on
// are left out.
func (c *card) frontMatter(w io.Writer) {
	text := func(s string) string {
		b, _ := json.Marshal(s) // a JSON string is a YAML string
		return string(b)
	}
	fmt.Fprintln(w, "---")
	if c.License != "" {
		fmt.Fprintf(w, "license: %s\n", text(c.License))
	}
	task := "tabular-regression"
	switch {
	case c.Predicts == algorithms.ClassShares.String() || c.Spec.Algorithm != "" && c.shown.LabelType.Classes:
		task = "tabular-classification"
	case c.shown.Provenance.Shape.Size() > 0:
		task = "image-classification"
	}
	fmt.Fprintf(w, "library_name: coppice-ldl\npipeline_tag: %s\ntags:\n- label-distribution-learning\n- coppice\n- %s\n",
		task, c.Algorithm)
	_, all := pipeline.Compare(c.Measures, c.MeanPredictor, c.Added)
	if !c.HeldOut || len(all) == 0 {
		fmt.Fprintln(w, "---")
		return
	}
	fmt.Fprintln(w, "metrics:")
	for _, m := range all {
		fmt.Fprintf(w, "- %s\n", text(m.Name))
	}
	fmt.Fprintf(w, "model-index:\n- name: %s\n  results:\n  - task:\n      type: %s\n      name: Label distribution "+
		"learning\n    dataset:\n      type: tabular\n      name: %s\n      split: test\n    metrics:\n", text(c.Name), task,
		text(cmp.Or(c.Data.Name, c.Data.Digest)))
	for _, m := range all {
		fmt.Fprintf(w, "    - type: %s\n      name: %s\n      value: %s\n", text(m.Name), text(m.Title),
			yamlNumber(m.Model.Mean))
	}
	fmt.Fprintln(w, "---")
}

// yamlNumber writes a number as YAML and JSON do; null if it is not finite.
func yamlNumber(v float64) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// markdown writes the card.
func (c *card) markdown() []byte {
	w := new(bytes.Buffer)
	c.frontMatter(w)
	fmt.Fprintf(w, "\n# %s\n\n", inline(c.Name))
	fmt.Fprintf(w, "A model of `%s` (%s). It reads %s and predicts %s of %s: %s.\n", c.Algorithm, inline(c.Summary),
		units.Plural(c.Data.Features, "feature"), c.Predicts, units.Plural(c.Data.Labels, "label"),
		inline(cli.NameList(c.Data.LabelNames)))
	if c.Paper != "" {
		fmt.Fprintf(w, "\nPaper: %s.\n", inline(strings.TrimSuffix(c.Paper, ".")))
	}
	if c.License == "" {
		fmt.Fprint(w, "\nThe card names no license.\n")
	}
	p := c.shown.Provenance
	c.arrays(w)
	fmt.Fprint(w, "\n## Data and training\n\n")
	pairs(w, "property", [][2]string{
		{"model digest", "`" + c.Digest + "`"},
		{"data digest", "`" + c.Data.Digest + "`"},
		{"dataset", inline(c.Data.Name)},
		{"labels are", inline(c.Data.LabelsAre)},
		{"flags of the command that read the data", inline(cmp.Or(c.Data.ReadWith, "none"))},
		{"missing values", inline(cmp.Or(c.Data.Missing, "refused by Coppice"))},
		{"split", inline(results.Split(c.Spec, p.Group))},
		{"samples", results.Samples(c.Samples, 0)},
		{"seed", fmt.Sprint(c.Spec.Seed)},
		{"steps", results.Steps(p.Steps, p.BestStep, p.RefitSteps)},
		{"label enhancement", enhanceText(c.Spec.Enhance)},
		{"Coppice", fmt.Sprintf("%s, arithmetic version %d", c.Version, c.Numerics)},
	})
	c.measureTable(w)
	fmt.Fprint(w, "\n## Hyperparameters\n\n")
	var settings [][2]string
	for _, s := range spec.Settings(c.Spec.Params) {
		settings = append(settings, [2]string{code(s.Key), code(s.Value)})
	}
	pairs(w, "hyperparameter", settings)
	fmt.Fprint(w, "\n## Commands\n\nFILE is the data file.\n\n")
	block(w, c.Commands.Predict, c.Commands.Evaluate,
		repeat(p, "", spec.Changed(c.Algorithm, spec.Settings(c.Spec.Params), c.shown.on...)))
	fmt.Fprint(w, "\n## Verify\n\nThe model depends only on data, hyperparameters and seed. The first command compares "+
		"the digest of\nthe data. The second command also trains the model again, and compares the digests of both "+
		"models.\nThe model digest identifies the numbers of the model, not an exported file: the commands need the model "+
		"file.\n\n")
	block(w, c.Commands.VerifyData, c.Commands.Verify)
	return w.Bytes()
}

func enhanceText(e *round.Enhance) string {
	if e == nil {
		return ""
	}
	return e.String()
}

// arrays says what the model reads and predicts.
func (c *card) arrays(w io.Writer) {
	fmt.Fprintf(w, "\n## Input and output\n\nThe model has these arrays, with a row for each sample%s:\n\n", c.fileText())
	pairs(w, "array", append(arrayLines(c.Inputs), arrayLines(c.Outputs)...))
	fmt.Fprint(w, "\nGive the features as they are in the data file, in this order. The model scales them itself.\n")
	p := c.shown.Provenance
	if by, err := dataset.ParseMissing(p.Missing); err == nil && by.Fill {
		fmt.Fprintf(w, "\nA missing feature is replaced by %v.\n", by.Value)
	} else if by.By != "" {
		fmt.Fprintf(w, "\nA missing feature is replaced by its %s in the training samples.\n", by.By)
	} else {
		fmt.Fprint(w, "\nCoppice refuses missing features. An exported file refuses none: check that all features are "+
			"finite numbers.\n")
	}
	c.examples(w)
	if len(p.Reading.Categories) == 0 || len(c.Inputs) > 1 {
		return
	}
	for _, k := range p.Reading.Categories {
		fmt.Fprintf(w, "\nThe column %s has a feature for each level: 1 for samples of the level, and otherwise 0.\n",
			inline(cli.NameList([]string{k.Name})))
	}
}

// examples writes the predictions of the examples, and how an exported file is used and checked.
func (c *card) examples(w io.Writer) {
	if c.SHA256 != "" {
		fmt.Fprintf(w, "\nThe pages docs/guides/export.md and docs/guides/export-onnx.md of Coppice have programs that "+
			"predict with exported files.\nThe file %s has the SHA-256 hash `%s`.\n", code(c.File), c.SHA256)
	}
	const most = 50 // labels
	if len(c.Examples) != 2 || len(c.Outputs[0].Columns) > most {
		return
	}
	fmt.Fprint(w, "\nUse these predictions to check a program that reads the model. "+
		"The number of a feature is j, counted from 0.\n\n"+
		"| prediction | all features are 0 | feature j is (j mod 5 - 2) / 2 |\n| --- | --: | --: |\n")
	for i, name := range c.Outputs[0].Columns {
		fmt.Fprintf(w, "| %s | %v | %v |\n", cell(inline(cli.NameList([]string{name}))), c.Examples[0].Predictions[i],
			c.Examples[1].Predictions[i])
	}
}

// fileText names the exported file.
func (c *card) fileText() string {
	if c.File == "" {
		return ""
	}
	return " (" + code(c.File) + ")"
}

// arrayLines describes arrays with their columns.
func arrayLines(all []export.Array) (lines [][2]string) {
	const most = 200 // columns
	for _, a := range all {
		var names []string
		for _, name := range a.Columns[:min(most, len(a.Columns))] {
			names = append(names, inline(cli.NameList([]string{name})))
		}
		if len(a.Columns) > most {
			names = append(names, "and so on; the JSON of the card has all names")
		}
		text := fmt.Sprintf("%s, %s: %s", a.Type, units.Plural(len(a.Columns), "column"), strings.Join(names, ", "))
		if len(a.Levels) > 0 {
			text += "; levels: " + inline(cli.NameList(a.Levels))
		}
		lines = append(lines, [2]string{code(a.Name), text})
	}
	return lines
}

// measureTable writes the measures of the model and of its baseline.
func (c *card) measureTable(w io.Writer) {
	on := "held-out test samples"
	if !c.HeldOut {
		on = "samples that the model was trained on, because no samples were held out"
	}
	baseline, all := pipeline.Compare(c.Measures, c.MeanPredictor, c.Added)
	fmt.Fprintf(w, "\n## Measures\n\nMean and standard deviation over %s%s.\n\n", on,
		results.HowText(c.Spec.Clip, c.Spec.WeightedMeasures))
	fmt.Fprintf(w, "| measure | model | ± | %s | ± | better is |\n| --- | --: | --: | --: | --: | --- |\n", baseline)
	for _, m := range all {
		better := "lower"
		if m.HigherIsBetter {
			better = "higher"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", m.Title, cli.Measure(m.Model.Mean), cli.Measure(m.Model.Std),
			cli.Measure(m.Baseline.Mean), cli.Measure(m.Baseline.Std), better)
	}
	if c.Linear != nil {
		fmt.Fprintf(w, "\nThe linear baseline (sa-bfgs) has the K-L %s.\n", cli.Measure(c.Linear.Measures[0].Mean))
	}
}

// pairs writes a table of names and values, without empty values.
func pairs(w io.Writer, header string, lines [][2]string) {
	fmt.Fprintf(w, "| %s | value |\n| --- | --- |\n", header)
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(w, "| %s | %s |\n", cell(l[0]), cell(l[1]))
		}
	}
}

// inline writes a text into a line of Markdown: names may have characters that are marks there.
func inline(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("&", "&amp;", "~", `\~`, `\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`).Replace(s)
}

// cell writes a text of Markdown into a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// code writes a text as code in a line of Markdown.
func code(s string) string {
	marks, s := fence("`", s), strings.Join(strings.Fields(s), " ")
	if len(marks) > 1 {
		return marks + " " + s + " " + marks
	}
	return marks + s + marks
}

// block writes commands as a block of code.
func block(w io.Writer, commands ...string) {
	text := strings.Join(commands, "\n")
	marks := fence("```", text)
	fmt.Fprintf(w, "%ssh\n%s\n%[1]s\n", marks, text)
}

// fence returns marks of code that a text does not have: least, or more of them.
func fence(least, text string) string {
	for strings.Contains(text, least) {
		least += "`"
	}
	return least
}

// cardFiles are the files of a card that are not complete yet.
type cardFiles struct {
	paths []string
	parts []*cli.File
}

func (f *cardFiles) add(path string, b []byte) error {
	if path == "" {
		return nil
	}
	file, err := cli.Create(path)
	if err != nil {
		return err
	}
	f.paths, f.parts = append(f.paths, path), append(f.parts, file)
	_, err = file.Write(b)
	return err
}

func (f *cardFiles) names() []string { return f.paths }

func (f *cardFiles) discard() {
	for _, file := range f.parts {
		file.Discard()
	}
}

// commit gives the files their names.
func (f *cardFiles) commit() error {
	for _, file := range f.parts {
		if err := file.Commit(); err != nil {
			return err
		}
	}
	return nil
}
