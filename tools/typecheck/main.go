// Command typecheck checks that packages are right Go for another system or architecture. It
// reads them and all that they import from source, for a few seconds where compiling takes a
// minute. It compiles nothing: a package with assembly for that architecture is an error, as
// it has to be built.
//
//	go run ./tools/typecheck darwin/arm64 ./...
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: typecheck SYSTEM/ARCHITECTURE PACKAGE...")
	}
	system, architecture, ok := strings.Cut(args[0], "/")
	if !ok {
		return fmt.Errorf("%s: want a system and an architecture, as in darwin/arm64", args[0])
	}
	all, err := list(".", system, architecture, args[1:])
	if err != nil {
		return err
	}
	return check(all, architecture)
}
