package uicmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
)

// openWithin is how long the program that opens a browser may take to fail.
const openWithin = 2 * time.Second

// openOrSay opens an address in a browser. If that does not work, a note says what to do with another address.
func openOrSay(a *cli.App, url, other string) {
	if err := openBrowser(url); err != nil {
		a.Note("no browser was opened (%v); open %s in a browser", err, other)
	}
}

// openBrowser opens an address in the browser of the user. The browser outlives this process.
func openBrowser(url string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && os.Getenv("BROWSER") == "" {
		return errors.New("this session has no display")
	}
	path, err := exec.LookPath(opener)
	if err != nil {
		return fmt.Errorf("the program %s is not installed", opener)
	}
	cmd := exec.Command(path, url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of this command does not reach the browser
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", opener, err)
		}
	case <-time.After(openWithin): // it may be the browser itself
	}
	return nil
}
