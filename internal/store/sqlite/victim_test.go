package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
)

// With this variable set, the test binary works on the database in that directory until it is killed.
const victimVariable = "SWITCHYARD_SQLITE_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVariable); dir != "" {
		if err := beVictim(dir); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// beVictim removes events in small steps until there is nothing left to do.
func beVictim(dir string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	for n := 1; n > 0; {
		fmt.Println("a step")
		ids, err := db.ExpiredEvents(ctx, domain.ExpiryQuery{Project: "p", Before: time.UnixMilli(math.MaxInt64), Now: time.UnixMilli(math.MaxInt64), Keep: 10, Needed: math.MaxInt64}, 7)
		if n = len(ids); err == nil {
			err = db.RemoveEvents(ctx, 0, ids)
		}
		if err != nil {
			return err
		}
	}
	return db.Close()
}

// kill repeatedly runs a victim and kills it during one of its steps, until one has completed. It returns how many were killed.
func kill(t *testing.T, dir string) (killed int) {
	t.Helper()
	for {
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), victimVariable+"="+dir)
		said, err := victim.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		steps := bufio.NewScanner(said)
		n := 0
		for n < 20+killed && steps.Scan() {
			n++
		}
		if n == 20+killed { // else it came to its end
			_ = victim.Process.Kill()
		}
		_, _ = io.Copy(io.Discard, said)
		err = victim.Wait()
		switch {
		case err == nil:
			return killed
		case victim.ProcessState.Exited():
			t.Fatalf("the victim failed by itself: %v", err)
		}
		killed++
	}
}
