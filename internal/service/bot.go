package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/domain"
)

// BotFile is the stored bot configuration.
type BotFile interface {
	// Load returns what the file holds now; without a file, the matrix transport and nothing else set.
	Load() (domain.BotConfig, error)
	// Save replaces the file as a whole.
	Save(domain.BotConfig) error
	// Name is the file's name as people know it.
	Name() string
}

// BotRunner is the running chat bot.
type BotRunner interface {
	// Restart stops the bot, starts it with the stored configuration, and returns when the new one runs.
	// When ctx ends first, the restart happens as soon as the old bot has ended.
	Restart(ctx context.Context) error
	Status() domain.BotStatus
	// Posted returns the id up to which the bot has posted the stream, math.MaxInt64 while it is off.
	Posted(ctx context.Context) (id int64, err error)
	// SendTest sends a test message to every room.
	SendTest(ctx context.Context) error
}

// Bot is the chat bot: its stored configuration and the one that runs.
type Bot struct {
	audit  *Audit
	file   BotFile
	runner BotRunner
	shared *sharedRunner // the runner, nil where this gateway is alone
	saves  chan struct{} // holds one value while a save is under way
}

const (
	// saveLimit bounds a save, including its restart and the wait for earlier saves, so that it is answered within 10 s.
	saveLimit = 9 * time.Second
	// testLimit bounds sending the test message to every room.
	testLimit = 20 * time.Second
)

// Config returns the stored bot configuration, secrets included. It returns an Internal error that says
// why when the file cannot be read.
func (s *Bot) Config(ctx context.Context) (config domain.BotConfig, err error) {
	if s.shared != nil {
		config, _, err = s.shared.Store.BotConfig(ctx)
		return config, err
	}
	if config, err = s.file.Load(); err != nil {
		return domain.BotConfig{}, explain(err, "the bot configuration cannot be read: ")
	}
	return config, nil
}

// Save stores config and restarts the bot, one save at a time. It returns Invalid for an unknown transport and Internal with the
// reason when saving or restarting failed; it takes 10 s at most.
func (s *Bot) Save(ctx context.Context, config domain.BotConfig) error {
	if err := domain.CheckTransport(config.Transport); err != nil {
		return err
	}
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return err
	}
	// A caller who goes away does not leave a saved file with the old bot.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	select {
	case s.saves <- struct{}{}:
		defer func() { <-s.saves }()
	case <-ctx.Done():
		return domain.Errorf(domain.Internal, "nothing was saved: an earlier save is still under way")
	}
	before, _ := s.Config(ctx) // an unreadable one is replaced
	err := s.store(ctx, config)
	if domain.CodeOf(err) == domain.Unavailable { // the database is not there
		return err
	}
	if err != nil {
		return explain(err, "the bot configuration could not be saved: ")
	}
	s.audit.changed(ctx, domain.Change{Action: domain.BotConfigured, Subject: string(config.Transport), Detail: configChange(before, config)})
	if err := s.runner.Restart(ctx); err != nil {
		return explain(err, "the configuration is saved, but the bot did not restart: ")
	}
	return nil
}

func (s *Bot) store(ctx context.Context, config domain.BotConfig) error {
	if s.shared != nil {
		return s.shared.Store.SaveBotConfig(ctx, config)
	}
	return s.file.Save(config)
}

// Starting returns the source from which a starting bot gets its configuration.
func (s *Bot) Starting() interface {
	Config(ctx context.Context) (domain.BotConfig, error)
} {
	if s.shared != nil {
		return s.shared
	}
	return s
}

// Status returns the bot's live state.
func (s *Bot) Status() domain.BotStatus { return s.runner.Status() }

// Test sends a test message to every room of the bot. It returns BadGateway with the reason when that failed.
func (s *Bot) Test(ctx context.Context) error {
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	if err := s.runner.SendTest(limited); err != nil {
		return err
	}
	s.audit.changed(ctx, domain.Change{Action: domain.BotTested, Subject: string(s.Status().Transport), Detail: "a test message was sent to every room"})
	return nil
}

// configChange tells what a new configuration changes, without the secrets.
func configChange(before, now domain.BotConfig) string {
	return details(
		was("transport", string(before.Transport), string(now.Transport)),
		was("homeserver", value(before.Homeserver), value(now.Homeserver)), was("username", value(before.Username), value(now.Username)),
		secretWas("password", value(before.Password), value(now.Password)),
		secretWas("bot token", value(before.TeamBotToken), value(now.TeamBotToken)),
		secretWas("signing secret", value(before.TeamSigningSecret), value(now.TeamSigningSecret)),
	)
}

// value returns what p points to, the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// explain adds the cause to the message: only administrators see these errors.
func explain(err error, message string) error {
	var known *domain.Error
	if errors.As(err, &known) {
		return domain.WrapError(domain.Internal, err, message+known.Message)
	}
	return domain.WrapError(domain.Internal, err, message+err.Error())
}
