package modelcmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/export"
)

type exportCmd struct {
	Model  string `arg:"" placeholder:"FILE|NAME" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	Out    string `required:"" placeholder:"FILE" help:"File to write; - for stdout."`
	Format string `enum:",npz,json,onnx" default:"" placeholder:"F" help:"Format: npz (NumPy arrays), json or onnx (default: from the end of the file's name)."`
	Card   string `placeholder:"FILE.md" help:"Write the model card to FILE.md and FILE.json; none: write no card (default: with m.npz, to m.card.md and m.card.json)."`

	cardFlags
	connect.ServerFlags
}

// Help implements kong's HelpProvider.
func (exportCmd) Help() string {
	return `A program without Coppice can read the written file; see docs/guides/export.md. The model card says what the model was
trained on, how good it is, and how to verify it. Hugging Face shows the card of a folder if it is called README.md:
--card README.md.`
}

// exported is what `coppice model export` prints.
type exported struct {
	Model    string   `json:"model"`
	Digest   string   `json:"digest"`
	Format   string   `json:"format"`
	Out      string   `json:"out"`
	Bytes    int64    `json:"bytes"`
	Tensors  int      `json:"tensors"` // of the model file
	Features int      `json:"features"`
	Labels   int      `json:"labels"`
	Predicts string   `json:"predicts"`
	Cards    []string `json:"cards"` // files
}

// Run implements `coppice model export`.
func (c *exportCmd) Run(a *cli.App) error {
	format, ok := export.FormatOf(c.Format, c.Out)
	if !ok {
		var ends []string
		for _, f := range export.Formats() {
			ends = append(ends, "."+f.Name)
		}
		return cli.Usagef("{out=%s}: the format of the file to write is unknown; give {format}, or a name that ends in %s",
			c.Out, strings.Join(ends, " or "))
	}
	markdown, text, err := c.cards()
	if err != nil {
		return err
	}
	m, dataset, err := loadModel(a, c.Model, &c.ServerFlags)
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	meter := progress.New(a)
	hash := sha256.New()
	size, err := format.Write(io.MultiWriter(meter.Writing(a.Ctx, "exporting", out), hash), m)
	meter.Clear()
	if err != nil {
		return fmt.Errorf("%s: cannot be exported as %s: %w", c.Model, format.Name, err)
	}
	e := &exported{Model: c.Model, Digest: m.File.Digest, Format: format.Name, Out: c.Out, Bytes: size,
		Tensors: len(m.File.Tensors), Predicts: m.Output().String(), Cards: []string{}}
	e.Features, e.Labels = m.Shape()
	named := c.Out
	if _, ok := export.FormatOf("", named); !ok { // stdout, or another name
		named = "model." + format.Name
	}
	card, err := newCard(m, c.Model, dataset, named, &c.cardFlags)
	if err != nil {
		return err
	}
	card.SHA256 = hex.EncodeToString(hash.Sum(nil))
	files, err := card.files(markdown, text)
	defer files.discard()
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if err := files.commit(); err != nil {
		return err
	}
	e.Cards = append(e.Cards, files.names()...)
	return a.PrintBeside(c.Out, e, func(w io.Writer) {
		lines := [][2]string{
			{"model", fmt.Sprintf("%s (%s, digest %s)", e.Model, m.File.Algorithm, cli.ShortDigest(e.Digest))},
			{"shape", fmt.Sprintf("%s, %s", units.Plural(e.Features, "feature"), units.Plural(e.Labels, "label"))},
			{"predicts", e.Predicts},
			{e.Format, fmt.Sprintf("%s (%s)", cli.OutputName(e.Out), units.Format(e.Bytes))},
		}
		if len(e.Cards) > 0 {
			lines = append(lines, [2]string{"model card", strings.Join(e.Cards, ", ")})
		}
		cli.WritePairs(w, lines)
	})
}

// cards returns the names of the card's files; empty: there are none.
func (c *exportCmd) cards() (markdown, text string, err error) {
	switch {
	case c.Card == "none" || c.Card == "" && (c.Out == cli.Stdout || cli.IsDirect(c.Out)):
		return "", "", nil
	case c.Card == "":
		base := strings.TrimSuffix(c.Out, filepath.Ext(c.Out))
		markdown = base + ".card.md"
	case !strings.HasSuffix(strings.ToLower(c.Card), ".md"):
		return "", "", cli.Usagef("{card=%s}: the card is written as Markdown, so the name must end in .md; none writes no "+
			"card", c.Card)
	default:
		markdown = c.Card
	}
	text = strings.TrimSuffix(markdown, filepath.Ext(markdown)) + ".json"
	err = cli.CheckDistinct(cli.OutputFlag{Flag: "--out", Path: c.Out}, cli.OutputFlag{Flag: "--card", Path: markdown},
		cli.OutputFlag{Flag: "--card", Path: text})
	for _, path := range []string{c.Out, markdown, text} {
		if err == nil {
			err = cli.CheckNotInput("--out", path, c.Model)
		}
	}
	return markdown, text, err
}
