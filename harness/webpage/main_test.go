package webpage_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/cmd/commands"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, commands.Main, commands.Run) }
