// Package situations has situations in which a deletion waits, is stuck or is no concern, and
// what "exeunt why" has to say about each: verdict, root reason, next step. Each situation is
// built on the real API server. Then the next step is carried out, and the object has to go.
//
// Every situation that is not stuck is explained again without each single right that the
// command uses: it must never be called stuck. These explanations run within the test, except
// for one right per situation, for which the program runs.
package situations
