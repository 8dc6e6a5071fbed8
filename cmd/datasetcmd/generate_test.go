package datasetcmd

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Images that are not all written are taken away; a folder that was there stays.
func TestTexturesLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := cmdtest.RunContext(ctx, "dataset", "generate", "--kind", "textures", "--out", filepath.Join(dir, "new"))
	if left := cmdtest.Contents(t, dir); e.Code == cli.ExitOK || len(left) > 0 {
		t.Errorf("exit code %d, %q is left", e.Code, left)
	}
	e = cmdtest.RunContext(ctx, "dataset", "generate", "--kind", "textures", "--out", dir)
	if left := cmdtest.Contents(t, dir); e.Code == cli.ExitOK || len(left) > 0 {
		t.Errorf("exit code %d, %q is left in a folder that was there", e.Code, left)
	}
}

// TestGeneratedImages: ages are read back with the flags that generate tells, and textures are a
// folder of images and maps.
func TestGeneratedImages(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "ages.npz")
	var made written
	cmdtest.JSON(t, &made, "dataset", "generate", "--kind", "ages", "--rows", "40", "--out", file)
	if made.Rows != 40 || made.Shape != "1x32x32" || made.Read != "--range 0:69 --values value" {
		t.Errorf("%+v", made)
	}
	var inspected struct {
		Rows      int    `json:"samples"`
		LabelsAre string `json:"labels_are"`
	}
	cmdtest.JSON(t, &inspected, append([]string{"dataset", "inspect", file}, strings.Fields(made.Read)...)...)
	if inspected.Rows != 40 || inspected.LabelsAre != "numeric labels from 0 to 69, with exact numbers" {
		t.Errorf("%+v", inspected)
	}
	folder := filepath.Join(dir, "t")
	cmdtest.Works(t, "dataset", "generate", "--kind", "textures", "--out", folder)
	if e := cmdtest.Run(t, "dataset", "generate", "--kind", "textures", "--out", folder); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "not empty") {
		t.Errorf("into a folder that is not empty: %d, %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "dataset", "generate", "--kind", "textures", "--out", folder, "--rows",
		"3"); e.Code != cli.ExitUsage {
		t.Errorf("rows of textures: %d", e.Code)
	}
	var cut cutImages
	cmdtest.JSON(t, &cut, "dataset", "patches", "--images", filepath.Join(folder, "images"), "--maps",
		filepath.Join(folder, "maps"), "--out", filepath.Join(dir, "p.npz"), "--stride", "40")
	if cut.Images != 60 || cut.Train.Rows != 240 || len(cut.Classes) != 4 {
		t.Errorf("%+v, %+v", cut, cut.Train)
	}
}

func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "a.csv.gz", "a.npz"} {
		path := filepath.Join(dir, name)
		cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "80", "--features", "20", "--labels", "4",
			"--density", "0.1", "--seed", "3", "--out", path)
		var r results.Result
		cmdtest.JSON(t, &r, clitest.TrainArgs(path)...)
		if want := "a"; r.Dataset != want {
			t.Errorf("dataset %q", r.Dataset)
		}
		if name != "a.csv" {
			continue
		}
		if rows := clitest.ReadCSV(t, path); len(rows) != 81 || len(rows[0]) != 24 {
			t.Errorf("%d lines of %d fields", len(rows), len(rows[0]))
		}
	}
}
