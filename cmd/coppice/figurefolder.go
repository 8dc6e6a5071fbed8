package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	figures "github.com/coppice-ldl/coppice/experiment/figure"
)

// namedFigure is a figure that goes to a folder under a name.
type namedFigure struct {
	name string
	*figures.Figure
}

// checkFigures refuses a folder for figures that is a file, is in no folder, or cannot be written,
// before anything is computed.
func checkFigures(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return usagef("%s %s: is a file; give the name of a folder", flag, dir)
		}
		return writable(filepath.Join(dir, "figure.svg"))
	}
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return usagef("%s %s: the parent folder does not exist", flag, dir)
	}
	return writable(dir)
}

// writeFigures writes each figure as SVG and as PNG; all of them are drawn before the first one
// is written.
func writeFigures(a *app, dir string, all []namedFigure) error {
	if len(all) == 0 {
		a.note("%s: there is nothing to draw", dir)
		return nil
	}
	drawn, boxed := make(map[string][]byte), []rune(nil)
	var names []string
	for _, f := range all {
		var svg, png bytes.Buffer
		if err := f.SVG(&svg); err != nil {
			return err
		}
		if err := f.PNG(&png); err != nil {
			return err
		}
		boxed = append(boxed, f.Boxed()...)
		drawn[f.name+".svg"], drawn[f.name+".png"] = svg.Bytes(), png.Bytes()
		names = append(names, f.name+".svg", f.name+".png")
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		return fmt.Errorf("%s: cannot be made: %w", dir, err)
	}
	for _, name := range names {
		if err := writeFile(filepath.Join(dir, name), drawn[name]); err != nil {
			return err
		}
	}
	a.note("%s in %s, each as .svg and .png", plural(len(all), "figure"), dir)
	noteBoxed(a, boxed)
	return nil
}

// mostBoxed bounds the letters that a note names.
const mostBoxed = 20

// noteBoxed names the letters that PNG has no font for.
func noteBoxed(a *app, boxed []rune) {
	slices.Sort(boxed)
	if boxed = slices.Compact(boxed); len(boxed) == 0 {
		return
	}
	var names []string
	for _, r := range boxed[:min(len(boxed), mostBoxed)] {
		names = append(names, fmt.Sprintf("%c (U+%04X)", r, r))
	}
	if n := len(boxed) - mostBoxed; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	a.note("the font of the .png files lacks %s: the .png files show boxes with the codes of these characters; the .svg files show the characters", strings.Join(names, ", "))
}
