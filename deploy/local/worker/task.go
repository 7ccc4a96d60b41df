package worker

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// errUnwanted: the suite has said that nobody wants this work any more.
var errUnwanted = errors.New("nobody wants this work any more")

// task is one stage of one run.
type task struct {
	worker *Worker
	job    jobs.Message
	log    *slog.Logger
}

// do plays the script of the job's stage. A prompt (for code2wf: a screen id) that begins with "fail: " makes the run fail with the
// error code that follows, so that people can see what a failure looks like.
func (t task) do(ctx context.Context) error {
	if code, ok := t.failure(); ok {
		return t.fail(ctx, code)
	}
	if t.job.Stage == lifecycle.StageParse {
		if err := t.steps(ctx, "Reading the frame", "Finding components", "Naming what was found"); err != nil {
			return err
		}
		if err := t.document(ctx); err != nil {
			return err
		}
		if _, err := t.tell(ctx, word{"event": "parsed"}); err != nil || t.job.AutoConfirm == nil || *t.job.AutoConfirm == string(lifecycle.IfNormal) {
			return err // the designer is asked; the next stage is another job
		}
	}
	return t.build(ctx)
}

func (t task) failure() (code string, ok bool) {
	if t.job.Prompt != nil {
		return strings.CutPrefix(*t.job.Prompt, "fail: ")
	}
	if t.job.Code2WFID != "" {
		return strings.CutPrefix(t.job.ScreenID, "fail: ")
	}
	return "", false
}

// steps tells progress, one step after another.
func (t task) steps(ctx context.Context, names ...string) error {
	for i, name := range names {
		pause(ctx, t.worker.Pace)
		percent := float64(100 * (i + 1) / (len(names) + 1))
		if _, err := t.tell(ctx, word{"event": "progress", "progress": map[string]any{"percent": percent, "message": name}}); err != nil {
			return err
		}
	}
	pause(ctx, t.worker.Pace)
	return ctx.Err()
}

// build makes a result, leaves it in S3 and says that the run is completed.
func (t task) build(ctx context.Context) error {
	if err := t.steps(ctx, "Laying out", "Placing components", "Checking the result"); err != nil {
		return err
	}
	flags := t.flags()
	key, err := t.put(ctx, "result.json", map[string]any{
		"schema": "framerun.result/1", "run": t.id(), "kind": t.job.Kind, "attempt": t.job.Attempt, "screen_id": t.job.ScreenID,
		"nodes": []any{map[string]any{"type": "FRAME", "name": t.job.ScreenID, "children": []any{}}}, "flag_count": flags,
	})
	if err != nil {
		return err
	}
	done := word{"event": "completed", "result_url": key}
	if t.job.Edge == nil || t.worker.Documents == nil { // else the suite copies the numbers from the document
		done["flag_count"] = flags
	}
	if t.job.Edge != nil && t.worker.Documents == nil {
		done["score"], done["score_version"] = score, scoreVersion
	}
	_, err = t.tell(ctx, done)
	return err
}

// fail leaves what is known of the failure in S3 and says that the run has failed.
func (t task) fail(ctx context.Context, code string) error {
	pause(ctx, t.worker.Pace)
	key, err := t.put(ctx, "failure.json", map[string]any{"schema": "framerun.failure/1", "run": t.id(), "error_code": code})
	if err != nil {
		return err
	}
	_, err = t.tell(ctx, word{"event": "failed", "result_url": key,
		"manifest": map[string]any{"error_code": code, "error_message": "scripted failure " + code}})
	return err
}

func (t task) id() string { return t.job.JobID + t.job.Code2WFID }

// put writes an artifact under the prefix that the job names, and returns its key.
func (t task) put(ctx context.Context, name string, content any) (string, error) {
	body, err := json.Marshal(content, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return "", err
	}
	key := t.job.ResultPrefix + name
	_, err = t.worker.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &t.worker.Bucket, Key: &key, Body: bytes.NewReader(body),
		ContentType: aws.String("application/json")})
	if err != nil {
		return "", fmt.Errorf("worker: artifact %s: %w", key, err)
	}
	return key, nil
}
