"""Words for the grammar of phrases about motion: actions, styles, who moves and where; long because it is data.

`MOVES` has one entry per action: `name: plain descriptions = ways to say it | objects`. The ways are base forms, O
stands for an object; the descriptions stand for the action's meaning. `STYLES` has the same, with adjectives.
"""

MOVES = """
walk: walk at an ordinary pace, go on foot = walk, stroll, saunter, amble, wander, step forward, pace up and down, go
  for a walk, roam, mosey, tread along, take a stroll, go on foot, walk along, make one's way on foot, take a walk,
  promenade, meander, take a few steps, toddle, waddle, hike, patrol, ramble, go forward, come along, walk up to the
  door, approach the house, leave, depart, tread carefully, walk past the gate, go ahead, traipse along, move along,
  proceed on foot, walk the dog, go out, enter the room, come in, march off slowly, perambulate, go home
run: run fast, move quickly on foot = run, sprint, dash, race, jog, rush, hurry, scurry, bolt, scamper, tear along, run
  away, flee, hasten, hurry off, rush off, take to one's heels, speed off, hare off, dart, scuttle, zoom, whiz past, go
  flat out, make a run for it, charge ahead, leg it, beat a hasty retreat, run like the wind, hightail it, hurtle along,
  gallop off, pelt down the road, bustle, barrel along, run for one's life, scoot off, skedaddle, run a marathon, pick
  up speed, chase along, escape, run off, break into a run, get away, rocket away, shoot off, scram
jump: jump up, leap into the air = jump, leap, jump up, jump over O, leap across O, spring up, bound, vault over O, take
  a leap, hurdle O, pounce, spring onto O, jump for joy, bounce on a trampoline, dunk a ball, go airborne, launch
  oneself upward, do a jump, long jump, jump down from O, jump on O, skip over O, catapult oneself upward, leapfrog,
  jump with both feet, hop over O, lunge upward, jump rope, do a high jump, spring into the air | the fence, a puddle, a
  log, the gap, a box, the ditch
hop: hop on one leg, small bouncing hops = hop, skip, bounce along, hop on one leg, hop around, play hopscotch, bounce
  on one foot, jump on one foot, bunny hop, skip rope, hop like a rabbit, spring along in small hops, bob along, jump
  about on one leg, go hopping, hop from foot to foot
crawl: crawl on hands and knees = crawl, creep on all fours, crawl on one's belly, go on hands and knees, slither,
  wriggle along the ground, squirm forward, scoot on all fours, drag oneself along on the belly, worm one's way under O,
  move on all fours, scrabble along, inch along the floor, creep on the belly, clamber along on hands and knees, crawl
  under O, squirm on the stomach, pull oneself forward on the elbows, move like a baby, go on all fours | the table, the
  wire, the fence
sneak: sneak quietly, move without being noticed = sneak, tiptoe, creep, prowl, steal away, stalk O, slink, skulk, creep
  up on O, tread softly, move in silence, move stealthily, go on tiptoe, lurk, slip past O unseen, sneak past O, keep
  out of sight, move like a ninja, tread without a sound, pad softly, sneak away, sneak in, pussyfoot, steal into the
  room, avoid being seen, walk on tiptoes, sneak up on O, spy on O | the guard, the prey, a mouse, the enemy
march: march in step like a soldier = march, parade, march in step, goose-step, march past, file past, walk in lockstep,
  march in formation, troop along, stride in rhythm, parade past, walk like a soldier, keep step, step in unison, stomp
  in formation, goosestep
limp: limp because of a hurt leg = limp, hobble, walk with a limp, drag one leg, favour one leg, walk on a sprained
  ankle, walk with a bad knee, shuffle on a hurt foot, walk lamely, hirple, walk on crutches, nurse an injured foot,
  have a bad leg, walk with a cane, walk on a broken leg, have an injured ankle, hop painfully, walk with a stiff leg,
  go lame
stagger: stagger, walk unsteadily as if drunk = stagger, stumble along, reel, totter, sway drunkenly, wobble along,
  lurch, walk unsteadily, swerve from side to side, walk home drunk, teeter, weave from side to side, be tipsy, careen,
  walk dizzily, sway from side to side, walk as if drunk, be drunk, be wasted, walk in a zigzag, stumble, falter,
  stumble out of the bar, wobble, struggle to stay upright, reel about
trudge: walk wearily, drag oneself along exhausted = trudge, plod, shuffle along, drag oneself along, slog, walk
  wearily, lumber, walk with heavy steps, trek on, shamble, drag one's feet, walk home exhausted, be dead tired and
  shuffle, traipse, schlep, walk in exhaustion, tramp on wearily, be exhausted, move with great effort, be worn out,
  drag one's body forward, limp along tired, toil up the hill, crawl along with fatigue, plough through the snow
strut: strut proudly, walk with a swagger = strut, swagger, walk proudly, prance, sashay, walk the catwalk, show off,
  walk like a model, stride along with the chest out, stride, walk with a swagger, stride like a king, parade about,
  walk like a boss, walk with attitude, flaunt oneself, stalk about proudly
sidestep: step sideways = step sideways, sidle, shuffle to the side, move to the left, move to the right, crab-walk,
  strafe
back_up: walk backwards = walk backwards, back away, retreat, back up, step back, withdraw, recoil, shrink back, go in
  reverse
skate: skate, slide over the ground = skate, slide, glide on ice, ski, surf, snowboard, roller-skate, skateboard, ride a
  skateboard, slip along
stomp: stomp with heavy feet = stomp, stamp one's feet, tramp, tread heavily, clomp, trample O, stamp on O | the grass,
  a bug, the floor
trot: trot along on four legs = trot, jog along, move at a trot, go at a trot, pad along
gallop: gallop like a horse = gallop, canter, go at a gallop, run like a horse, bound along on four legs, ride at full
  speed, thunder along, charge over the plain, lope, stampede, race across the prairie, gallop away, gallop across the
  field, race like a horse, run on four legs at full speed, go at full gallop, charge along on hooves, race along the
  track, tear across the plain
rear: rear up on the hind legs = rear up, rise on the hind legs, buck, rear, stand on the hind legs
idle: stand still and wait = stand, stand still, wait, idle, rest, stay in place, remain still, do nothing, linger,
  stand by, loiter, hang around, stay put, freeze, not move, keep still, hold still, pause, stand around, hang about, be
  motionless, stay on standby, keep watch, stand about, stand in place, be idle, stay, remain, be waiting, breathe, bide
  one's time, stay where one is, stand guard, queue, lounge about, hover about, do not move a muscle
look: look around = look around, look about, gaze around, search, scan the horizon, peer into the distance, look left
  and right, glance over the shoulder, stare, watch O, look for O, explore, observe O, inspect O, spy O, look up, look
  down, squint, look over O, gape at O, seek O, peek at O | the sky, the crowd, a bird, the keys
turn: turn around to face another way = turn around, turn, turn left, turn right, face the other way, swivel, pivot,
  turn about, turn on one's heel, swing around, do an about-face, spin to face O, look back, wheel around, turn to O,
  turn one's back, about-turn, change direction, rotate to the side, turn half round, U-turn, twist around, look round |
  the door, the enemy
spin: spin round and round = spin, whirl, twirl, rotate, pirouette, spin around, turn in circles, go round and round,
  revolve, spin like a top, gyrate, twist round, do a spin, do pirouettes, spin in place, reel round, circle on the
  spot, swirl
dance: dance to music = dance, boogie, groove, groove to the music, waltz, tango, breakdance, move to the beat, sway to
  the music, do the twist, tap dance, do ballet, jive, dance salsa, bust a move, shake a leg, dance the samba, disco
  dance, moonwalk, dance wildly, do a jig, do the robot, dance hip hop, dance at a party, shimmy, rock out, cut a rug,
  twerk, do the macarena, foxtrot, do a folk dance, swing one's hips, jitterbug, polka
wave: wave a hand to greet someone = wave, wave hello, wave goodbye, greet O, say hello, beckon, wave a hand, say hi,
  say goodbye, hail a taxi, flag down O, give a wave, signal hello, welcome O, raise a hand in greeting, wave at O, wave
  back, wave to O, hail O, bid farewell, wave with both arms, signal to O, say bye | a friend, the neighbours, the
  crowd, the driver
point: point a finger at something = point at O, point, point to O, gesture at O, indicate O, show the way, point a
  finger at O, single out O, gesture towards O, aim a finger at O, point out O, point the way, point up, direct
  attention to O, show O with the finger, accuse O | the door, the map, a star, the culprit, the castle
clap: clap the hands, applaud = clap, applaud, clap one's hands, give a round of applause, give applause, slap the palms
  together, clap along, give O a hand, beat the hands together, clap to the beat, put one's hands together, give a
  standing ovation, slap the hands together, smack the hands together | the band, the singer
bow: bow politely = bow, take a bow, curtsy, bow deeply, bow down, bend at the waist, bow to O, make a bow, incline the
  body, lower the head in respect, bow in respect, stoop in greeting, make a deep bow, pay respects with a bow, bend
  forward in thanks, do a curtsy | the king, the audience
nod: nod the head, yes = nod, nod yes, nod in agreement, say yes with the head, bob the head, agree silently, nod
  approvingly, give a nod, approve with a nod, move the head up and down, nod one's head, nod the head, confirm with the
  head, nod twice, agree with a nod, give the okay with the head, say yes
shake_head: shake the head, no = shake one's head, say no with the head, disagree, refuse silently, wag the head, deny
  O, shake the head in disbelief, signal no, move the head from side to side, reject O, refuse O, shake the head no,
  turn the face left and right, decline O, say no, disapprove, refuse with the head | the offer, the food, the charge
shrug: shrug the shoulders, not know = shrug, shrug one's shoulders, raise one's shoulders, not know the answer, lift
  both shoulders, have no idea, be clueless, not care, express doubt, gesture that one does not know, lift one's
  shoulders, have no clue, say I don't know, hunch the shoulders, throw up the hands in doubt, be indifferent
salute: salute like a soldier = salute, give a salute, salute the flag, salute an officer, raise a hand to the cap,
  stand at attention, snap to attention, put a hand to the forehead, do a military greeting, touch the cap, present
  arms, honour the flag, pay military respect
cheer: cheer with joy, celebrate = cheer, celebrate, rejoice, raise the arms in triumph, shout hooray, exult, hurrah,
  celebrate a goal, pump a fist, throw the arms up in joy, go wild with joy, be overjoyed, whoop, celebrate a win,
  revel, punch the air, celebrate a victory, jump with joy, applaud wildly, hail the winner, shout with joy, be
  jubilant, triumph, win, dance with joy, throw one's arms up
laugh: laugh out loud = laugh, giggle, chuckle, laugh out loud, snicker, crack up, burst out laughing, titter, roar with
  laughter, chortle, snigger, laugh at a joke, cackle, howl with laughter, be amused, giggle like a child, shake with
  laughter, hold one's belly laughing, grin, smile, guffaw, fall about laughing
cry: cry, weep with sadness = cry, weep, sob, wail, shed tears, mourn, cry one's eyes out, burst into tears, bawl,
  grieve, snivel, blubber, break down in tears, lament, be in tears, wipe away tears, hide one's face and cry, moan,
  whine, be sad, sniffle, howl with grief
talk: talk to someone = talk, speak, chat, converse, give a speech, tell a story, discuss O, argue, explain O, lecture,
  chatter, talk on the phone, gossip, preach, address O, present O, negotiate, make small talk, babble, talk to O,
  quarrel, hold a speech, have a conversation, tell O, speak to O, report, debate, mumble, whisper, natter, say
  something, ask a question, answer, recite O, pitch O | the weather, the plan, the crowd, a friend
sing: sing a song = sing, sing a song, hum, chant, croon, serenade O, sing karaoke, sing in a choir, belt out O, carol,
  sing opera, perform O on stage, yodel, sing along, sing in the shower, chirp, sing a lullaby, intone O, sing into a
  microphone, sing an aria | a tune, a ballad, the anthem
play_music: play an instrument = play the guitar, drum, play the piano, play the violin, strum O, play the flute, beat a
  drum, blow a trumpet, conduct an orchestra | a guitar, a banjo
sit: sit down on a seat = sit down, sit, take a seat, be seated, flop into O, drop into O, plop down on O, slump into O,
  sink into O, settle into O, sit on O, perch on O, seat oneself on O, park oneself on O, collapse into O, lower oneself
  onto O, be sitting, sit cross-legged, have a seat, squat on O, plonk oneself on O, plop into O, plump down on O, sag
  into O, rest on O, slide into O, sit back, take one's place | a chair, the sofa, a bench, the armchair, a stool, the
  throne
stand_up: stand up from sitting or lying = stand up, get up, rise to one's feet, get to one's feet, rise from O, arise,
  pick oneself up, get back up, straighten up, rise, jump to one's feet, get out of O, struggle to one's feet, leap out
  of O, heave oneself out of O, rise up, jump up from O, get off O, come to one's feet, stand, stand up straight, rise
  from the ground, scramble to one's feet, climb out of O, hop out of O, be up on one's feet again | the chair, the bed,
  the floor, the armchair, a seat
lie_down: lie down flat = lie down, lie on one's back, stretch out on O, lie on O, lay oneself down, recline on O,
  sprawl on O, go to bed, lie flat, sunbathe, rest on O, lounge on O, lie face down, settle on O, lie back, drop onto O,
  lay down on O, flop onto O, lie on one's side, lie on one's stomach, be lying, loll on O, bed down, stretch out flat |
  the grass, the bed, the floor, the beach, the couch, the rug
sleep: sleep = sleep, nap, doze, snooze, fall asleep, slumber, take a nap, dream, sleep soundly, nod off, snore, be
  asleep, drift off, have a siesta, be fast asleep, hibernate, be sleeping, go to sleep, sleep like a log, catch some
  sleep, take forty winks, sleep tight, rest with closed eyes, be napping, kip
kneel: kneel down on the knees = kneel, kneel down, go down on one knee, drop to one's knees, pray on both knees, get
  down on one's knees, fall to one's knees, take a knee, propose on one knee, pray, kneel at the altar, sink to one's
  knees, go down on both knees, bend the knee, kneel before the king, be on one's knees, fall on one's knees, kneel on
  the ground
crouch: crouch down low = crouch, squat, duck down, crouch down, hunch, huddle, squat down, bend low, get down low,
  hunker down, cower, hide behind O, stay low, curl up, stoop low, duck, crouch behind O, shrink down, squat low, lower
  oneself, cower behind O, sit on one's heels, lurk behind O, make oneself small | the wall, a bush, a car, the corner
pick_up: pick something up from the ground = pick up O, bend down for O, grab O from the floor, gather O, take O from
  the ground, lift O off the floor, stoop to pick up O, collect O, reach down for O, retrieve O, scoop up O, fetch O,
  pluck O off the floor, take O, grab O, lift O from the ground, bend over and take O, gather up O, snatch up O, seize
  O, reach for O, harvest O, pull O out of the ground | a coin, the ball, the toys, a box, the keys, flowers, an apple
put_down: put something down = put down O, set down O, place O on the table, lay O down, drop O, lower O to the ground,
  leave O on the floor, put O away, place O, deposit O, unload O | the box, a cup, the bag, the book
carry: carry a heavy load = carry O, haul O, lug O, bear O, carry O on the shoulder, cart O, transport O, tote O, hold O
  in both arms, bring O, move O, take O upstairs, deliver O, carry O away, shoulder O, lug O up the stairs, hump O, hold
  O, walk with O in the arms, drag along O, move O upstairs, carry a load, carry O on the back, balance O on the head |
  a box, a crate, a suitcase, sacks, the child, a heavy bag, a piano, firewood
push: push something away = push O, shove O, press against O, push O away, thrust O forward, nudge O, push O uphill,
  lean into O, budge O, wheel O along, shoulder O aside, move O by pushing, push against O, shove O aside, push O over,
  push O forward, press O, bulldoze O, push with both hands, force O open, thrust O away | the cart, the door, a
  boulder, the car, the wardrobe, the box, a bed, a rock
pull: pull something with the arms = pull O, drag O, tug O, tow O, heave on O, pull on O, haul in O, yank O, draw O,
  drag O behind, wrench O open, jerk O, play tug-of-war, reel in O, pull O along, pull O towards oneself, drag O across
  the floor, hoist the sail, haul on O, heave O in, pull hard on O, pull O open, lug O behind | the rope, the cart, the
  sledge, a net, the door, a trailer, a sack
lift: lift a weight up = lift O, raise O overhead, hoist O, lift up O, lift weights, heave O up, press O overhead, bench
  press, do a deadlift, hold O up high, elevate O, jack up O, lift O above the head, pick up a heavy weight, hold O
  overhead, power-lift, pump iron, raise O, lift O up high, snatch a barbell, press weights | the barbell, a dumbbell, a
  barrel, a stone, the child, a heavy weight
throw: throw an object = throw O, toss O, fling O, cast O, hurl O, lob O, pitch O, throw O away, chuck O, sling O, throw
  O at the wall, toss O into the lake, heave O at the wall, bowl O, launch O, hurl O away, throw O far, throw a
  fastball, flip O to a friend, shy O, put the shot, toss O up, throw O to the dog, let O fly, shoot O at the wall, cast
  a fishing line, catapult O, play darts, throw the discus, throw the javelin, bung O over the fence | a ball, a stone,
  a spear, the bottle, a rock, a snowball, the keys, a grenade, a coconut
catch: catch something in the air = catch O, catch O in the air, grab O out of the air, snatch O, snag O, get hold of O
  in flight, intercept O, catch O with both hands, receive O, juggle O, get O, catch a pass, trap O, grasp O in mid-air,
  catch O in the mouth, field O, clutch O, take hold of O as it falls, catch a fish | the ball, a frisbee, the disc, a
  falling cup, the pass, a butterfly
kick: kick with the foot = kick, kick O, give O a kick, boot O, kick high, do a roundhouse kick, strike with the foot,
  kick out, kick a goal, play football, kick with the hind legs, punt O, dribble O, kick the ball, kick backwards, do a
  karate kick, kick O away, shoot the ball at the goal, lash out with a leg, do a side kick, kick O down, kick O across
  the road, take a penalty | the ball, the door, a can, the enemy, a bucket, the wall
punch: punch with the fist, box = punch, box, punch O, hit O with a fist, throw a punch, jab, strike O with the fist,
  land a hook, throw an uppercut, beat O up, sock O, slug O, spar, brawl, pummel O, fight with bare fists, shadow-box,
  thump O, hit, hit O, clobber O, deck O, swing at O, hit O in the face, knock O out, throw a left hook, wallop O, smack
  O, slap O, give O a black eye, do boxing, pound O, punch hard, trade blows | the bag, the bully, the enemy, the wall,
  an opponent
sword: fight with a sword = swing a sword, slash with a sword, fence, fight with a sword, thrust with a blade, strike
  with an axe, stab O, slash at O, duel, hack at O, swing an axe, wield a katana, cut O down with a blade, swing a club,
  cross swords, attack with a spear, cut with a knife, swing a blade, slice O, chop at O, lunge with a rapier, fight
  with a stick, brandish a sword, slash O, run O through, fight O with a blade, stab with a dagger, wield an axe, strike
  O with a sword | the enemy, a goblin, the dragon, a monster
shoot: shoot a gun or a bow = shoot, fire a gun, shoot an arrow, aim a rifle, draw a bow, fire at O, shoot at O, pull
  the trigger, open fire, fire a pistol, take a shot at O, snipe O, let fly an arrow, gun down O, loose an arrow, fire,
  fire a shot, shoot a rifle, blast O, aim at O, target O, shoot with a crossbow, discharge a gun, fire arrows, shoot O
  down, take aim | the target, the enemy, a deer, the bandits
reload: reload a weapon = reload, reload a gun, load a rifle, change the magazine
block: block an attack, defend = block, block O, parry O, raise a shield, fend off O, defend oneself, guard against O,
  shield oneself from O, ward off O, deflect O, take cover behind a shield, hold up the shield, repel O, defend, protect
  oneself, hold off O, cover up against O, stop O, shield the face, guard, stave off O, resist O, raise the arms to
  block, counter O | the blow, a punch, the sword, the attack, an arrow, the strike
dodge: dodge out of the way = dodge, dodge O, duck under O, evade O, avoid O, step aside, jump out of the way, lean out
  of the way of O, sidestep O, swerve to avoid O, get out of the way, move out of the way of O, leap aside, bend out of
  the way, slip a punch, avoid being hit, weave and duck, twist away from O, jump aside, jink, lean back to avoid O,
  escape O | the blow, the ball, an arrow, the bull, a punch, the rock
fall: fall down = fall, fall down, trip and fall, trip, collapse, tumble down, fall over, drop to the ground, topple
  over, slip and fall, slip on O, fall off O, fall flat on one's face, lose balance, crash to the ground, take a tumble,
  go down, fall over backwards, keel over, stumble and fall, drop, fall on one's face, slide and fall, plunge, fall out
  of O, go sprawling, crumple, hit the ground, fall from O, be knocked down, land on one's back, topple off O, go head
  first | the ice, a banana, the wall, the horse, a ladder
roll: roll over on the ground = roll, roll over, roll on the ground, roll around, roll down the hill, do a roll, roll in
  the mud, wallow in mud, roll onto the back, turn over and over, barrel roll, tumble over, roll about, somersault along
  the ground, roll sideways, roll downhill, do a forward roll, roll across the floor, spin along the floor, turn over
flip: do a flip or somersault = do a somersault, do a backflip, flip, do a cartwheel, somersault, do a handspring, do a
  front flip, flip backwards, turn a cartwheel, do acrobatics, turn head over heels, do a salto, do parkour, do a flip,
  do a double somersault, backflip, turn somersaults, do gymnastics flips, do a back handspring, tumble through the air,
  vault and flip, do a front somersault, flip over
handstand: stand on the hands = do a handstand, stand on one's hands, walk on one's hands, do a headstand
balance: keep balance on something narrow = balance, balance on one leg, walk a tightrope, balance on a beam, keep one's
  balance, stand on one foot
climb: climb up = climb, climb O, climb up O, scale O, go up O, scramble up O, ascend O, clamber up O, mount O, climb
  over O, shin up O, rock climb, swarm up O, climb a ladder, climb down O, go up a ladder, climb onto O, crawl up O,
  pull oneself up O, haul oneself up O, go mountaineering, climb the stairs, work one's way up O | the ladder, a tree,
  the cliff, the wall, the rope, the mountain, the stairs
swim: swim in water = swim, dive, float in the water, paddle, swim underwater, do the front crawl, tread water, swim
  laps, do the backstroke, splash about, snorkel, do the breaststroke, glide through the water, go for a swim, swim
  across the lake, float, do the butterfly stroke, do the crawl, dog-paddle, wade, bathe, plunge into water, swim like a
  fish, glide below the surface
fly: fly with wings = fly, soar, flap one's wings, take wing, glide through the air, take off, flutter, beat one's
  wings, hover, circle in the sky, wing one's way home, flit about, flap, buzz around, take flight, swoop down, float in
  the air, fly away, fly up, fly around, fly off, sail through the air, rise into the air, spread its wings and fly, fly
  overhead, glide, wheel in the sky, fly from flower to flower, dart through the air, drone around, zip around
land: land after flight = land, touch down, alight on O, come down to land, land on O | a branch, the ground, the roof
eat: eat food = eat, eat O, chew, feed, munch, have dinner, dine, graze, devour O, munch on O, nibble O, have a bite of
  O, gobble O, peck at O, gulp down food, feast on O, swallow O, taste O, have lunch, have a meal, have breakfast, snack
  on O, wolf down O, scoff O, chew on O, bite into O, tuck into O, stuff oneself with O, consume O, pick at O, crunch O,
  eat with a fork, eat up O, lick O | an apple, grass, a sandwich, pizza, seeds, meat, bread
drink: drink from a glass = drink, drink O, sip O, take a sip, gulp O, have a drink, drain a glass, slurp O, lap O, swig
  O, guzzle O, quench one's thirst, down O, toast, sip, have a cup of O, drink up, swallow O, drink from a bottle, have
  O, drink at the trough, knock back O, drink like a fish, empty a mug | water, tea, beer, milk, wine, coffee, juice
bite: bite with the teeth = bite, bite O, snap at O, sink its teeth into O, gnaw O, nip O, chomp on O, attack with the
  jaws, snap its jaws, maul O, chew on O, sink its fangs into O, bite into O, bite at O, snap with the jaws, gnaw at O,
  clamp the jaws on O, tear at O with the teeth, rip O apart, sink the teeth in | the postman, a bone, the prey, the
  leg, a hunter
claw: strike with claws = claw, scratch O, swipe with a paw, attack, lash out, strike out at O, attack O, slash with
  claws, charge at O, ram O, gore O, butt O, pounce on O, maul O, jump at O, fight, fight O, go for O, hit with a paw,
  assault O, charge | the enemy, the hunter, the tree
roar: roar loudly = roar, growl, howl, bellow, scream, snarl, shout, bark, screech, shriek, hiss, yell, let out a roar,
  call, trumpet, bay at the moon, meow, neigh, howl at the moon, roar like a lion, let out a cry, yowl, cry out, make a
  loud noise, caterwaul, snarl at O, growl at O, bray, squeal, croak, call out, yell at O, holler | the intruder, the
  knights
sniff: sniff at something = sniff, sniff at O, smell O, smell the air, follow a scent | the ground, a flower, the trail
groom: clean oneself = groom oneself, wash, lick its paw, brush one's hair, clean oneself, scratch oneself, comb one's
  hair, preen its feathers, shave, brush the teeth, take a shower, shake off water
die: die, be killed = die, drop dead, perish, die a slow death, be killed, pass away, breathe one's last, give up the
  ghost, be shot dead, fall dead, expire, bleed to death, be slain, fall down dead, be shot, lose one's life, kick the
  bucket, be dead, lie dead, succumb to O, get killed, croak, meet one's end, die in battle, sink lifeless to the
  ground, bite the dust | the wounds, the poison
hit: be hit and flinch = get hit, flinch, take a hit, recoil from a blow, be struck, wince, be knocked back, take
  damage, be punched, be hit by O, take a blow, reel from a blow, be hurt, receive a punch, be hit in the face | a ball,
  an arrow
stunned: be dazed = be dazed, be stunned, hold one's head, be dizzy, rub the eyes, faint
stretch: stretch the body and limbs = stretch, stretch one's arms, warm up, stretch one's back, do yoga, yawn and
  stretch, loosen up, reach for the sky, limber up, stretch the legs, arch the back, extend the arms, stretch after
  waking up, stretch out, stretch all limbs, stretch and yawn, extend the legs, reach up high, reach for the ceiling,
  touch one's toes, do stretching, get the stiffness out, unwind the back
exercise: do fitness exercises = exercise, do push-ups, do sit-ups, work out, do squats, do jumping jacks, train, do
  gymnastics, do lunges, do burpees, run on the spot, lift the knees, do aerobics, do pull-ups, keep fit, do planks, do
  fitness, go to the gym, train hard, do crunches, do a workout, do star jumps, sweat in the gym, do cardio, do leg
  raises, do knee bends, jump on the spot
golf: swing a bat, club or racket = swing a bat, play golf, hit a ball with a racket, play tennis, swing a racket, bat a
  ball, tee off, play baseball, serve in tennis
basketball: play basketball = play basketball, dribble a basketball, shoot hoops, bounce a ball
work: work with tools = hammer, saw wood, dig, sweep the floor, chop wood, mop the floor, paint a wall, cook, iron a
  shirt, hoe the field, wash the window, rake leaves, type, write, mine, weld, knit, sew, shovel snow, mow the lawn,
  plant a tree, wash dishes, vacuum, work, clean the table, bake bread, build a wall, drill a hole, repair O, use a
  hammer, screw O in, harvest the field, milk a cow, polish O, scrub the floor, dust the shelf | a chair, the lamp
open: open a door = open O, open the door, unlock O, open up O, knock on O, close O, shut O | the door, a chest, the
  window, the gate, a box
push_button: press a button = press a button, push a button, pull a lever, flip a switch, ring the bell
hug: hug someone = hug, hug O, embrace O, cuddle O, give O a hug, hold O tight, kiss O, give a hug, put an arm around O,
  wrap the arms around O, snuggle up to O | a friend, the child, the mother, each other
handshake: shake hands = shake hands, shake hands with O, greet O with a handshake, high-five O, give O five, bump fists
  | a friend, the boss, the visitor
give: give something to someone = give O, hand over O, offer O, pass O, present O as a gift, hand out O | a flower, the
  book, a present, money
ride: ride an animal or a vehicle = ride O, ride a horse, drive O, ride a bike, steer O, row a boat, pedal, mount O,
  gallop on a horse, cycle, drive a car, sail, paddle a canoe, fly a plane | a bicycle, a motorbike, the car, a camel
drive_off: shoo away = shoo O away, chase O, chase after O, hunt O, pursue O, run after O | the flies, a rabbit, the
  thief, the cat
read: read or use a device = read a book, use a phone, text, take a photo, look at a map, check the watch, watch
  television, play a video game
think: think = think, ponder, scratch one's head, rub one's chin, muse, wonder, reflect, contemplate, be deep in
  thought, be lost in thought, brood, have an idea, reason, remember
pray: pray or meditate = meditate, worship, bless O, do tai chi, sit in lotus | the crowd, the food
cast: cast a magic spell = cast a spell, do magic, conjure O, summon O, wave a wand, throw a fireball, use magic, do a
  spell, throw lightning, bewitch O, hex O | a demon, fire, lightning
scared: be afraid, tremble = tremble, shiver, quake with fear, be scared, shudder, panic, cover the face, shake with
  cold, freeze in terror, be terrified, cringe, quiver, shake with fear, gasp, be startled
angry: be furious = rage, throw a tantrum, shake a fist, be furious, lose one's temper, stamp with anger, threaten O,
  scold O, curse | the boy, the crowd
wag: wag the tail = wag its tail, swish its tail, whip its tail, shake its tail
wriggle: wriggle like a snake or worm = wriggle, writhe, squirm, coil up, undulate, snake along, twist and turn
swing: swing, hang = swing from O, hang from O, dangle from O, swing on a rope, brachiate | a branch, the bar, a tree
hide: hide = hide, take cover, hide behind a tree, lie low, hide in a corner, play hide and seek, conceal oneself, crawl
  into hiding, duck out of sight, seek cover
zombie: walk like a zombie = walk like a zombie, shamble with outstretched arms, shuffle like the undead
"""

STYLES = """
sad: in a sad way = sadly, sorrowfully, gloomily, with a heavy heart, in tears, miserably, dejectedly | sad, gloomy,
  heartbroken, depressed, unhappy, miserable
happy: in a happy way = happily, cheerfully, joyfully, merrily, gleefully, in high spirits | happy, cheerful, joyful,
  merry, delighted, jolly
angry: in an angry way = angrily, furiously, in a rage, fiercely, aggressively, violently | angry, furious, enraged,
  mad, aggressive
drunk: as if drunk = drunkenly, as if drunk, tipsily, after too many beers, under the influence | drunk, tipsy, drunken,
  intoxicated, boozy
tired: in a tired way = wearily, tiredly, sleepily, sluggishly, with the last of the strength, exhaustedly | tired,
  exhausted, weary, sleepy, worn-out
proud: in a proud way = proudly, with pride, confidently, with the head held high, majestically, boastfully | proud,
  confident, majestic, noble, haughty, arrogant
scared: in a fearful way = fearfully, anxiously, in fear, nervously, timidly, in panic | scared, frightened, afraid,
  nervous, timid, terrified
robot: like a robot = like a robot, mechanically, stiffly, robotically, like a machine, jerkily | robotic, stiff,
  mechanical
old: like an old person = like an old man, with a stoop, feebly, shakily, frailly | old, elderly, aged, frail, ancient
child: like a child = like a child, playfully, childishly, like a toddler | young, playful, little, childish
fast: very fast = quickly, fast, rapidly, in a hurry, at full speed, swiftly, hastily, in no time | fast, quick, swift,
  speedy, hurried
slow: very slowly = slowly, leisurely, at a snail's pace, without hurry, gradually, lazily | slow, lazy, leisurely,
  sluggish
sneaky: quietly = quietly, silently, stealthily, softly, secretly, without a sound | quiet, sneaky, silent, stealthy
heavy: heavily = heavily, ponderously, with heavy feet, clumsily, like an elephant | heavy, bulky, fat, clumsy
light: lightly = lightly, gracefully, elegantly, like a ballerina, nimbly, smoothly | graceful, elegant, light, nimble
strong: with force = powerfully, hard, with all one's might, forcefully, with great strength | strong, mighty, powerful,
  muscular
weak: weakly = weakly, gently, half-heartedly, carefully, limply, tenderly | weak, gentle, careful, sick, injured
crazy: in a wild way = wildly, like crazy, madly, frantically, chaotically | wild, crazy, frantic, mad
zombie: like a zombie = like a zombie, like the undead, with dead eyes | undead, rotten
sexy: in a flirty way = flirtatiously, seductively, with swaying hips, coquettishly | flirty, glamorous
cold: as if cold = shivering, as if freezing, trembling with cold | cold, freezing, shivering
brave: bravely = bravely, heroically, boldly, fearlessly | brave, heroic, bold
relaxed: relaxed = calmly, casually, in a relaxed way, peacefully, coolly | calm, relaxed, casual, cool
funny: in a funny way = comically, in a silly way, like a clown, goofily | funny, silly, goofy
"""

ACTORS = """
person, man, woman, boy, girl, child, baby, toddler, teenager, old man, old woman, grandfather, grandmother, lady,
  gentleman, guy, kid, mother, father, couple, crowd
soldier, knight, pirate, sailor, policeman, thief, nurse, doctor, teacher, student, farmer, cook, waiter, clown, dancer,
  boxer, wrestler, gymnast, athlete, footballer, golfer, hunter, archer, king, queen, prince, princess, monk, priest,
  judge, postman, builder, miner, fisherman, cowboy, samurai, ninja, viking, gladiator, spy, guard, hiker, tourist,
  businessman, singer, actor, musician, butler, maid, wizard, witch, astronaut, firefighter, skater, coach, gardener,
  gamer, beggar, bride, scientist, superhero, villain, acrobat, warrior, cheerleader
robot, android, zombie, skeleton, ghost, goblin, orc, ogre, troll, dragon, demon, vampire, werewolf, giant, dwarf, elf,
  monster, alien, mummy, golem, cyborg, unicorn, centaur, minotaur, angel, fairy, mech, snowman, puppet, doll
dog, cat, puppy, kitten, horse, pony, cow, bull, pig, sheep, goat, donkey, mule, fox, wolf, bear, lion, tiger, leopard,
  cheetah, elephant, giraffe, zebra, camel, deer, rabbit, hare, squirrel, mouse, rat, hamster, monkey, gorilla,
  kangaroo, hippo, rhino, panda, koala, hedgehog, raccoon, otter, bat, stallion, ox, moose, lizard, crocodile, turtle,
  tortoise, snake, frog, toad, gecko
dinosaur, T. rex, raptor, triceratops, stegosaurus, pterodactyl, mammoth, brontosaurus
bird, eagle, sparrow, pigeon, chicken, rooster, duck, goose, swan, owl, parrot, crow, penguin, ostrich, flamingo, heron,
  seagull, hawk, turkey
spider, beetle, ant, bee, fly, wasp, butterfly, cockroach, scorpion, crab, caterpillar, grasshopper, ladybird, mosquito,
  worm, snail, centipede, lobster
fish, shark, dolphin, whale, salmon, goldfish, octopus, squid, seal, eel, jellyfish
"""

PLACES = """
in the park, down the street, across the room, through the forest, on the beach, at home, over the field, along the
  river, in the snow, up the hill, down the hall, in the garden, on the stage, at a party, in the kitchen, around the
  house, to the door, across the road, in the rain, at night, by the fire, on the roof, in the desert, at the office,
  into the distance, towards the camera, over the bridge, under the table, by the sea, in front of the house, all day,
  again, for a while, together, alone, in the dark, in the mud, at the station, in the market, to the left, to the
  right, in a circle
"""

IRREGULAR = """
run ran, go went, take took, make made, creep crept, steal stole, stand stood, sit sat, get got, rise rose, lie lay,
lay laid, sleep slept, fall fell, kneel knelt, throw threw, catch caught, fight fought, shoot shot, swim swam, fly
flew, eat ate, drink drank, bite bit, give gave, say said, tell told, speak spoke, sing sang, weep wept, bend bent,
hold held, bring brought, draw drew, swing swung, strike struck, cut cut, hit hit, do did, spin spun, tear tore,
tread trod, sink sank, leap leapt, put put, set set, beat beat, feel felt, ride rode, drive drove, hide hid, read
read, think thought, keep kept, be was, dig dug, sweep swept, shed shed, break broke, bear bore, let let, come came,
hang hung, burst burst, breathe breathed, sling slung, fling flung, cast cast, freeze froze, show showed, write
wrote
"""
"""Past forms."""

DOUBLED = """
bat beg bob chat chop clap cut dab dig drag drip drop drum flip flit flop get grab grin grip gun hit hop hug hum jab
jog kip knit let lug mop nap nod pat pin plod plop plug put rip rub run scram scrub set shrug shut sip sit skip slam
slip snag snap sob spar spin squat stab step stop strum strut swim tap tip trip trot tug wag whip win wrap zip
"""
"""Verbs that double their last letter before -ing and -ed."""
