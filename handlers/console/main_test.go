package console_test

import (
	"os"
	"testing"

	"switchyard/internal/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }
