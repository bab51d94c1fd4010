package store_test

import "testing"

func TestStateIsKept(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			ctx, reopen := t.Context(), engine.open(t)
			db, err := reopen()
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"first", "second", ""} {
				if err := db.SetState(ctx, "key", value); err != nil {
					t.Fatal(err)
				}
				if got, err := db.State(ctx, "key"); got != value || err != nil {
					t.Errorf("State = %q, %v; want %q", got, err, value)
				}
			}
			if err := db.SetState(ctx, "key", "kept"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, reopen)
			if got, err := db.State(ctx, "key"); got != "kept" || err != nil {
				t.Errorf("after reopening: State = %q, %v", got, err)
			}
			if got, err := db.State(ctx, "other"); got != "" || err != nil {
				t.Errorf("absent: State = %q, %v", got, err)
			}
		})
	}
}
