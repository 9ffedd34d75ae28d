/* Sessions, and workers that are started anew.
 *
 * With NEW_SESSION the controller installs again, once, at any moment, at the latest when all
 * workers are through. The switch then has the next session, and its registers are as they
 * were. Each worker is started anew at any later moment, and until then its old process goes
 * on. What was under way stays under way. The number of a packet has its session, as its header has: the
 * switch and the workers drop what is of another one, but a DONE is answered.
 *
 * With SECOND_PROCESS one worker, any one, is started again in the same session, once, at any
 * moment. What was under way of its barrier is gone by then: a process takes longer to
 * start than a packet to arrive.
 *
 * Mistakes: ANY_SESSION is the kind of packet of which nobody looks at the session; with
 * NO_WAITING a DONE of another session is not answered; with ANY_PROCESS the switch does not
 * tell processes apart. */

byte session;   /* of the switch, from 0 */
byte second;    /* workers that have a second process in their session */

#ifdef ANY_SESSION
#define TOO_LATE_TRIED
#define CHECKED(kind) ((kind) != ANY_SESSION)
#else
#define CHECKED(kind) true
#endif

#ifdef NEW_SESSION
/* So many numbers of packets are of one session. */
#define NUMBERS(kind) \
    ((kind) == FEATURE -> 4 * BLOCKS_OF_A_SESSION : \
    ((kind) == ACK -> 6 * BLOCKS_OF_A_SESSION : \
    ((kind) == SUM || (kind) == RECALL -> 2 * BLOCKS_OF_A_SESSION : \
    ((kind) == DONE || (kind) == ADVANCE || (kind) == REFUSAL -> 3 * TAGS_OF_A_SESSION : \
                                                                 8 * BLOCKS_OF_A_SESSION))))
#define RECEIVER(kind) \
    ((kind) == ACK -> id % 6 / 2 : ((kind) == SUM -> HOME(id) : \
    ((kind) == ADVANCE || (kind) == REFUSAL -> id % 3 : HOME(id / 4))))

/* What is of another session is dropped. Who does not look takes it for one of its own. */
#define IN_SESSION_OF(receiver, kind, what_happens) \
    foreign = (id / NUMBERS(kind) != (receiver)); \
    if \
    :: foreign && CHECKED(kind) -> wrong_session(kind) \
    :: else -> id = id % NUMBERS(kind) + (receiver) * NUMBERS(kind); what_happens() \
    fi; \
    foreign = false

/* The block whose feature is in the packet. */
#define BLOCK_SENT(block) ((block) - foreign * BLOCKS_OF_A_SESSION)

#ifdef NO_WAITING
#define WAITING_SENT false
#else
#define WAITING_SENT true
#endif

/* WAITING, with the session of the switch. It is heeded by a worker of an earlier one. */
inline wrong_session(kind) {
    if
    :: kind == DONE && WAITING_SENT -> SEND(REFUSAL, id)
    :: else
    fi
}

#define AT_SWITCH(kind, what_happens) IN_SESSION_OF(session, kind, what_happens)
#define AT_WORKER(kind, what_happens) \
    worker = RECEIVER(kind); \
    if \
    :: HAS(stopped, worker) \
    :: else -> IN_SESSION_OF(SESSION_OF(AT(worker, 0)), kind, what_happens) \
    fi
#else
#define BLOCK_SENT(block) (block)
#define AT_SWITCH(kind, what_happens) what_happens()
#define AT_WORKER(kind, what_happens) what_happens()
#endif

inline send_done(of_tag) {
#ifdef SECOND_PROCESS
    if
    :: HAS(second, worker) -> SEND(SECOND_DONE, PLACE_ID(of_tag, worker))
    :: else -> SEND(DONE, PLACE_ID(of_tag, worker))
    fi
#else
    SEND(DONE, PLACE_ID(of_tag, worker))
#endif
}

/* A new process knows nothing but its session. */
inline start_process() {
    for (pool : 0 .. POOLS - 1) {
        place[worker + 3 * pool] = FIRST_TAG(session) + pool;
        accepted = accepted & ~BIT(worker + 3 * pool)
    };
    stopped = stopped & ~BIT(worker);
    for (vertex : 0 .. VERTICES - 1) {
        if
        :: HOME(vertex) == worker ->
            have = have & ~BIT(vertex); fetching = fetching & ~BIT(vertex);
            doubt[vertex] = 0; raw[vertex] = 0
        :: else
        fi
    };
    open_round(FIRST_TAG(session))
}

#ifdef NEW_SESSION
#define IS_OLD(worker) (SESSION_OF(AT(worker, 0)) < session)
#define INSTALL_DUE (session == 0 && ALL_AT_END_OF(0))
/* Who repeats a `done` hears of it, who waits for an acknowledgement loses patience. */
#define TO_BE_STARTED(worker) \
    (IS_OLD(worker) && (HAS(stopped, worker) || !IN_ANY_POOL(closing | accepted, worker)))
#else
#define INSTALL_DUE false
#define TO_BE_STARTED(worker) false
#endif

#ifdef SECOND_PROCESS
/* incarnation.p4, of each worker: 1 + the opening of the latest round that it has been in, and
 * whether its second process was. */
byte known_second;

/* The `done` behind which early features come tells of their round already. */
#if defined EARLY && EARLY == 1 && !defined EARLY_UNKNOWN
byte known_tag[WORKERS] = 1;
#else
byte known_tag[WORKERS];
#endif
#ifdef EARLY_UNKNOWN
#define KNOWN_UNTIL(tag) (1 + OPENING_OF(tag))
#else
#define KNOWN_UNTIL(tag) (1 + OPENING_OF(IS_EARLY(NEXT(tag)) -> NEXT(tag) : (tag)))
#endif

#define ALL_BLOCKS(source) (286331153 << (source))

/* Not in the switch, only for assertions. */
byte first_done[POOLS];   /* the first process was done with the tags before this one */
bool first_known;   /* the switch knew of the first process when the second one began */

/* The run ends when a worker is refused. */
#define GIVEN_UP (stopped != 0)

#ifdef ANY_PROCESS
#define ONLY_PROCESS(number) true
#else
#define ONLY_PROCESS(number) \
    (known_tag[worker] == 0 || HAS(known_second, worker) == number \
     || (IS_OPENING(tag) && OPENING_OF(tag) >= known_tag[worker]))
#endif

inline done_of_process(number) {
    tag = id / 3; worker = id % 3;
    if
    :: ONLY_PROCESS(number) ->
        if
        :: KNOWN_UNTIL(tag) > known_tag[worker] ->
            known_tag[worker] = KNOWN_UNTIL(tag);
            known_second = (known_second & ~BIT(worker)) | (number << worker)
        :: else
        fi;
        done_at_switch()
    :: else -> SEND(REFUSAL, id)
    fi
}

inline done_of_first() { done_of_process(0) }
inline done_of_second() { done_of_process(1) }

inline start_second_process() {
    second = BIT(worker);
    first_known = known_tag[worker] > 0;
#ifdef EARLY
    /* So does one that has let in its early features. */
    for (source : 0 .. 3) {
        first_known = first_known || (OWNER(source) == worker &&
            (last_tag[source] > 0 || last_tag[source + 4 * (POOLS - 1)] > 0));
        if
        :: OWNER(source) == worker -> WITHDRAW(FEATURE, ALL_BLOCKS(source))
        :: else
        fi
    };
#endif
    for (pool : 0 .. POOLS - 1) {
        first_done[pool] = place[worker + 3 * pool] + HAS(closing, worker + 3 * pool)
    };
    WITHDRAW(DONE, ALL_TAGS(worker)); WITHDRAW(ADVANCE, ALL_TAGS(worker));
    WITHDRAW(REFUSAL, ALL_TAGS(worker));
    start_process()
}

/* For what its first process was done with nobody waits, unless the second one takes part. */
#define FIRST_PROCESS_WAS_DONE_WITH(worker, tag) \
    (HAS(second, worker) && AT(worker, tag) < POOLS && (tag) < first_done[POOL(tag)])

/* Where the switch knew of the first process, the second is let through no block. */
inline assert_only_process() {
    assert(!HAS(second, worker) || !first_known || tag < POOLS)
}
#else
#define GIVEN_UP false
#define FIRST_PROCESS_WAS_DONE_WITH(worker, tag) false
#define assert_only_process() skip
#endif
