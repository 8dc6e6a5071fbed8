// Command wheels builds the wheels of the Python library coppice-ldl: one for each platform, with the binary, and one
// without a binary for all other platforms.
//
//	go run ./tools/wheels --out dist                     all wheels
//	go run ./tools/wheels --out dist --only host         the wheel of this platform
//	go run ./tools/wheels --out dist --only any          the wheel without a binary
//	go run ./tools/wheels --packages                     the largest packages of the binary
//
// Equal sources give equal wheels, byte for byte.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/coppice-ldl/coppice/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "wheels:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is an error about the flags.
type usageError struct{ error }

// run does what the arguments say.
func run(ctx context.Context, w io.Writer, args []string) error {
	flags := flag.NewFlagSet("wheels", flag.ContinueOnError)
	out := flags.String("out", "", "folder for the wheels")
	only := flags.String("only", "", "wheels to build, separated by commas: any, host, or platforms such as linux/amd64 (default: all)")
	number := flags.String("version", version.String, "version of the wheels")
	packages := flags.Bool("packages", false, "list the largest packages of the binary instead")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%q: want only flags", flags.Arg(0))}
	}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	if *packages {
		return printPackages(ctx, w, root)
	}
	if *out == "" {
		return usageError{errors.New("--out is missing: want the folder for the wheels")}
	}
	chosen, err := choose(*only)
	if err != nil {
		return usageError{err}
	}
	wheelVersion, err := pep440(*number)
	if err != nil {
		return usageError{fmt.Errorf("--version: %w", err)}
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for _, p := range chosen {
		name, size, err := write(ctx, root, *out, wheelVersion, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%11d bytes  %s\n", size, filepath.Join(*out, name))
	}
	return nil
}
