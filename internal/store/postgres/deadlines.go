package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// deadlines limits statements and batches whose contexts have no deadline to callLimit. It does so as pgx's tracer,
// which all statements pass, those of package sql as well.
type deadlines struct {
	seen func(statement string, args []any) // unless nil, called with each statement
}

type cancelKey struct{}

func (d deadlines) begin(ctx context.Context) context.Context {
	if _, limited := ctx.Deadline(); limited {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (d deadlines) end(ctx context.Context) {
	if cancel, ours := ctx.Value(cancelKey{}).(context.CancelFunc); ours {
		cancel()
	}
}

func (d deadlines) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if d.seen != nil {
		d.seen(data.SQL, data.Args)
	}
	return d.begin(ctx)
}

func (d deadlines) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	d.end(ctx)
}

func (d deadlines) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.begin(ctx)
}

func (d deadlines) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if d.seen != nil {
		d.seen(data.SQL, data.Args)
	}
}

func (d deadlines) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	d.end(ctx)
}
