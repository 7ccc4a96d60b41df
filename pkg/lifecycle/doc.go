// Package lifecycle is the heart of the suite: it decides what may happen to a generation run, and nothing else.
//
// A run begins when a designer asks for it and ends in exactly one of four ways. In between it waits for a worker or, once,
// for the designer. This is the whole life of a wf2des run (both edges):
//
//	──create──▶ parsing ──parsed [normal]──▶ awaiting_confirm ──confirm──▶ assembling ──complete──▶ completed
//	                                         awaiting_confirm ──reject──▶ rejected
//	            parsing ──parsed [auto_confirm]──▶ assembling
//	            parsing ──complete [auto_confirm]──▶ completed
//	            any open state ──fail──▶ failed
//	            any open state ──cancel──▶ cancelled
//
// With auto-confirm nobody is asked: one worker call parses and assembles, so it may say "parsed" on its way or be complete at
// once. A code2wf run is simpler:
//
//	──create──▶ processing ──complete──▶ completed
//	            processing ──fail──▶ failed
//
// A completed run can be placed, rated (wf2des) and, like every ended run, deleted; an operator may have a worker's job sent out
// again (requeue, from runctl alone). None of these changes the state.
//
// The lines are data, in Transitions. Decide reads them and turns a Command into a Decision: the row as it shall be, a line
// for the timeline and perhaps a job. Two rules of the seeds stand beside the table:
//
//   - attempt is the fence. A worker's word of an older attempt is a no-op; requeue names the attempt that it takes the work from, so
//     that of two operators only one sends the job out again.
//   - the first ending wins. A worker that comes too late is told so and nothing changes; a person is refused and told the state.
//
// Time ends no run by itself. Where a state has a deadline, the backend fails the run in the worker's place, under a Guard: what it saw
// must still be so when the run is locked, or the run is left alone.
//
// The package is pure: standard library only, no clock, no context, no I/O, no JSON. Who stores a decision is pkg/store;
// who carries the job is pkg/relay.
package lifecycle
