package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
)

// TestAGatewayFrozenWhileItSendsBlocksNobodyForLong: half of its statements have arrived, and hold the stream's lock.
func TestAGatewayFrozenWhileItSendsBlocksNobodyForLong(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := open(t, url)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "switchyard"
	frozen, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close(t.Context())
	pipeline := frozen.PgConn().StartPipeline(t.Context())
	pipeline.SendQueryParams("SELECT last_id FROM stream FOR UPDATE", nil, nil, nil, nil)
	pipeline.SendFlushRequest()
	if err := pipeline.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.GetResults(); err != nil { // it has the lock
		t.Fatal(err)
	}
	began := time.Now()
	for {
		_, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 1)})
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("nobody can append any more: %v", err)
		}
	}
	t.Logf("it blocked others for %v", time.Since(began).Round(100*time.Millisecond))
}
