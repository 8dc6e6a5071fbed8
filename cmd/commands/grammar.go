package commands

import (
	"context"
	"io"
	"slices"

	"github.com/coppice-ldl/coppice/cmd/cli"
)

// runOfLibrary runs a command line. It builds only a part of the grammar if that has the command, because the rest would
// take longer than the training of a small model.
func runOfLibrary(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var g cli.Grammar = &root{}
	if len(args) > 0 && slices.Contains([]string{"train", "predict", "evaluate"}, args[0]) {
		g = &modelGrammar{}
	}
	return cli.Run(ctx, g, runOfLibrary, args, stdin, stdout, stderr)
}

// Run runs a command line, without the name of the program, and returns its exit code. The command stops if ctx ends.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, &root{}, runOfLibrary, args, stdin, stdout, stderr)
}

// Main runs the command line of this process, and ends the process with the exit code of the command.
func Main() {
	cli.Main(Run)
}
