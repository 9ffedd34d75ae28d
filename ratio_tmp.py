import sys
from dataclasses import replace
import bench.loads.exchange as ex
from bench.testbeds.testbed import Served, Testbed
from switchgnn.planner import build_plan, load_graph
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
g=load_graph("digits:80")
W=int(sys.argv[1]); pairs=int(sys.argv[2]); R=int(sys.argv[3])
plan=build_plan(g, workers=8, slots=4096, program=load_program().digest)
print(plan.manifest.blocks, plan.manifest.pools, plan.manifest.rows, plan.manifest.lanes)
bare=Served.whole(plan)
rs=[]
with Testbed(Target.EMBEDDED, bare, loopback=True) as tb:
    ex.exchange(tb, R, W)
    for i in range(pairs):
        t=[]
        for k in ((None,g) if i%2==0 else (g,None)):
            tb.served=replace(bare, graph=k)
            e=ex.exchange(tb,R,W)
            t.append((k is not None, e.seconds, e.processor_seconds))
        t=dict((a,(b,c)) for a,b,c in t)
        rs.append(t[True][0]/t[False][0])
        print(f"plain {t[False][0]*1e3:.2f} ms paths {t[True][0]*1e3:.2f} ratio {rs[-1]:.3f} cpu {t[True][1]/t[False][1]:.3f}", flush=True)
import numpy as np
print("median", np.median(rs), "mean", np.mean(rs))
