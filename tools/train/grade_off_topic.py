"""Texts that ask for no grade: the picture stays as it is. grade_grammar.py mixes them in."""
import random
from pathlib import Path

from grade_contexts import Contexts

# Files of WordNet's lexicographers whose words may well ask for something: attributes, feelings, phenomena, and verbs of weather and
# of emotion (https://wordnet.princeton.edu/documentation/lexnames5wn).
MEANINGFUL = {"07", "12", "19", "37", "43"}

THINGS = """dog cat car house tree bird computer keyboard table chair river mountain friend city street train plane guitar piano phone bottle window
door book letter paper kitchen garden horse cow sheep mouse elephant tiger lion shark whale boat ship bridge tower castle school teacher student doctor
nurse baker farmer engineer king queen soldier child boy girl man woman mother father brother sister uncle aunt baby cup plate spoon fork knife bread cheese
butter milk water tea coffee beer juice sugar salt pepper potato tomato onion carrot apple banana pear grape melon bus bicycle motorbike truck tractor
rocket engine wheel tyre battery camera lens tripod radio television screen printer desk lamp bed pillow blanket towel soap brush comb mirror shirt
trousers jacket coat hat shoe sock glove scarf belt watch ring wallet key lock hammer nail screw saw drill ladder bucket rope fence gate wall roof
chimney stair lift hospital church museum library theatre market shop bank office factory station airport harbour island lake hill valley road path
field stone rock cloud wind number question answer story song game ball goal team player referee match ticket price money coin tax law judge
bicycle umbrella suitcase passport map compass calendar meeting report invoice contract server database function variable loop string array
accountant agenda airline algebra ankle antenna apartment apron auction avenue backpack ballot bandage barber bargain barrel basket bathtub biscuit bookshelf briefcase broom budget bulletin bundle button cabinet cable calculator campus cannon cargo carpet
cashier certificate charity cheque chemist clerk closet coach collar college colleague comma company concert conference contest cook corporation council counter cousin credit crossword cupboard curriculum customer dealer deadline debt degree delivery
deposit dictionary dinner diploma discount dispute district divorce drawer driver economy editor election elbow embassy employee envelope essay exam exchange exercise expert extension fabric ferry festival folder footnote formula freight fund
furniture gadget garment gate geography goose grammar grandmother guest guitarist gym handbook handle headache hobby homework hotel household husband idea index industry inspector insurance interview jar jury kettle kilometre knee landlord language
lawyer league lecture lesson licence lodger lorry luggage machine maintenance manager manual mathematics mattress mayor meal meeting member merchant microphone minister minute mistake motor nephew newsletter niece nose notebook nurse oar opinion
organ owner package page pan parcel parking partner passenger pencil pension petition physics pilot pipe plan plot plug pocket poet policy politician postcode president priest prize professor profit project proposal protein province puzzle
quarter queue quiz rabbit racket railway rehearsal rent repair reporter restaurant resume ribbon route rule sailor salary sandwich sausage schedule scissors secretary seminar senator sentence sequence shelf shoulder signature sister socket software
spreadsheet stadium stamp statistics stomach store strategy stool summary surgeon syllable tailor tap tape taxpayer tenant tennis theorem throat thumb timetable toe tongue tool toothbrush tournament trade trainer tram treaty trophy tunnel tutor
uniform union university valve van vehicle verb vicar village volunteer vote voucher wage waiter waitress warehouse wedding weekday whistle widow winner workshop wrench wrist yoghurt zip""".split()
VERBS = """runs jumps eats sleeps drives flies reads writes sings dances plays works walks talks opens closes buys sells finds loses builds breaks
carries throws catches follows watches hears sees knows thinks likes hates loves wants needs gives takes sends brings keeps leaves meets calls
helps stops starts ends grows falls rises moves waits sits stands lies crossed jumped over drove went came said told asked bought found""".split()
PLAIN = """big small old new young long short tall fast slow good bad quick lazy blind deaf clever stupid tired hungry brave shy busy rude polite early late fat thin bald married foreign local previous heavy wide narrow round square empty full clean broken
cheap expensive famous lost wooden plastic wet dry loud quiet strong weak brown red white black green blue yellow grey golden pink""".split()
ASKED = """what time is it|how are you|hello|hello world|hi there|good morning|where is the station|who are you|what is your name|tell me a joke|write a poem
about cats|the quick fox jumps over the dog|once upon a time there was a king|to be or not to be|lorem ipsum dolor sit amet|see you tomorrow
|what is the capital of france|two plus two is four|i had eggs for breakfast|the train leaves at nine|please call me back|buy milk and eggs|happy birthday to you
|how do i install this|the stock market fell today|he scored three goals|my flight was delayed|open the window please|the meeting is on monday|thank you very much
|yes|no|ok|maybe|test|testing one two three|foo bar baz|asdf|qwerty|abc|xyz|undefined|null|none of your business|i love you|where are my keys|long live the king
|can you help me|what should i do|who won the game|how much does it cost|is anyone here|the answer is forty two|we are going to the cinema|do you speak english
|crop the picture|rotate it by ninety degrees|flip it|zoom in|slow it down|speed up|remove the background|add a dog|remove the person|sharpen it|blur it
|denoise|stabilise the video|make it bigger|resize to full hd|cut the first minute|mute the sound|add subtitles|louder|add music|crop|mirror it|replay
|save the file|open settings|delete everything|turn left at the corner|stand on the left|go to the top of the page|the bottom line is clear|the centre of town
|the right answer|the edge of the table|left or right|he left early|top ten songs|guten morgen|bonjour tout le monde|hola que tal|ciao bella|danke schoen
|je ne sais pas|wo ist der bahnhof|el perro come|merci beaucoup|la casa es grande|das ist ein haus|c'est la vie|to whom it may concern|best regards
|breaking news|terms and conditions apply|all rights reserved|click here to subscribe|error 404 not found|segmentation fault|out of memory|press any key
|the red car is fast|a brown dog|the blue house on the hill|she wore a green dress|red wine and white bread|a yellow submarine came|black cat|white rabbit|orange juice
|the white house said|a black hole|green tea with milk|blue jeans and a shirt|the pink panther|a golden retriever|the red cross|the green party|silver medal
|how warm is it outside|it is cold today|the water is too hot to drink|turn on the light|the light is on|she has dark hair|a bright student|contrast this with that
|the weather is warm in may|my soup is cold|dark matter|light music|he is cool|a cool guy|warm regards
|book me a table for four|what is the tallest mountain|remind me to call the dentist|how many grams are in an ounce|set a timer for ten minutes|who wrote don quixote|translate this letter into portuguese|find me a plumber nearby
|what does the word quorum mean|add eggs to my shopping list|send the invoice to accounting|how do i reset my password|read me my messages|where is the nearest pharmacy|divide seventy two by nine|play the next episode|call my sister
|what's the capital of uruguay|convert miles to kilometres|give me directions to the station|cancel my subscription|how old is the pope|spell necessary for me|order two more printer cartridges|what's on my calendar for thursday
|write a cover letter for a nurse|how long do i boil an egg|make an appointment with the vet|recommend a book about chess|unlock the front door|who won the election|how far is lisbon from madrid|search for cheap flights to zagreb|track my parcel
|what is the square root of eighty one|find a babysitter for friday|please summarise this article|how do you tie a bowline|list the members of the board|check the spelling in this paragraph|what time zone is nairobi in|name three rivers in europe
|who is the president of chile|compare these two phone contracts|give me a synonym for stubborn|how much does a piano weigh|rent a van for the weekend|define photosynthesis|what's the exchange rate for the yen|schedule a meeting with the auditors
|turn off notifications|pay the electricity bill|draft a reply to the landlord|renew my library card|how many bones are in the hand|which bus goes to the airport|wake me up in an hour|write me a poem about spoons|proofread my thesis
|explain how a pulley works|what year did the telephone appear|is my passport still valid|count backwards from twenty|does this shop take cheques|look up the phone number of the clinic|help me with my tax return|what do hamsters eat|how is cheese made
|suggest a name for our puppy|what's the plural of octopus|find the recipe for pancakes|tell my boss i'm running late|dictate a note|open the garage|who invented the zip fastener|what are the rules of badminton|put that in an email
|convert this file to a spreadsheet|how many players are in a rugby team|where did i park the car|can you repeat that please|is there a gluten free option|print three copies|how do i remove a splinter|can you hear me|how are you|what's your name
|nice to meet you|thanks a lot|you're welcome|see you on monday|how was the trip|did you get my message|i'll be there in five minutes|sorry i missed your call|same to you|no problem at all|let me think about it|how are the kids|long time no see
|what do you do for a living|i grew up near here|do you have any brothers|we moved house last year|my cousin works at the bank|have you two met before|pass the salt|i forgot my keys again|that's what i said|who told you that|are you coming with us
|she asked about you|where are you from|i don't think so|maybe next week|say hello to your mother|we were just talking about you|what did they say|any news from the office|you can sit here if you like|is this seat taken|i'll have the same
|keep the change|could we have the bill|excuse me where's the toilet|after you|bless you|congratulations on the new job|how's your back these days|i need to get going|let's keep in touch|give me a call sometime|it was good talking to you
|have you eaten|i agree with you|you've got a point there|that depends|who knows|i couldn't tell you|never mind|what a coincidence|hang on a second|he said he'd think about it|they got married in a registry office|my neighbour plays the trombone
|our lease is up for renewal|the lift is out of order|somebody left a bag here|you should meet my uncle|we ran out of toilet paper|hello there|yes|no|okay|pardon|cheers mate|fair enough|goodbye|thank you|actually i changed my mind|do you speak english
|how do you spell your surname|cut the first ten seconds|mute the audio|export as mp four|add subtitles|blur the number plate|trim the end of the clip|split the clip at the playhead|reverse the footage|rotate the video ninety degrees
|crop it to a square|speed it up two times|play this at half speed|merge these two clips|insert a title card|loop the last three seconds|stabilise the shaky footage|change the frame rate to thirty|flip the picture horizontally|zoom in on the speaker
|sync the sound with the lips|turn the volume down|add a voiceover|render the timeline|save the project|undo the last step|redo|copy and paste the clip|lower the bitrate|make the file smaller|extract the audio|duplicate the sequence
|ripple delete the gap|put our logo in the corner|remove the watermark|move the caption to the bottom|use a larger font for the credits|crossfade between the songs|replace the music|freeze the frame for two seconds|deinterlace the tape
|pan slowly to the left|track the player with the ball|remove the ums and ahs|add a lower third with her name|split screen with both interviews|nudge the clip three frames|snap the edit to the beat|export the edit decision list|consolidate the media
|relink the missing files|nest these clips|create a proxy|lock the track|set an in point|mark the out point|add chapter markers|upload it to my channel|make a vertical version for phones|remove the man on the left|erase the microphone from the shot
|censor the swear words|bleep out the name|normalise the loudness|add a drum roll|duck the music under the speech|time lapse of the building site|make a gif of this bit|take a screenshot|change the aspect ratio|resize to seven twenty|rename the clip
|group the selected layers|align the text to the left|add an arrow pointing at the door|swap the order of the scenes|keyframe the position|scale it down by half|add a countdown at the start|number the shots|pixelate her face
|put a mask over the licence|wipe transition between the chapters|jump cut please|shorten the intro|make it thirty seconds long|generate a transcript|translate the subtitles into finnish|delay the audio by four frames|stitch the panorama
|correct the lens distortion|straighten the horizon|remove duplicate frames|drop every other frame|export stills every minute|concatenate the files|strip the metadata|embed the timecode|open the last project|close all tabs|empty the recycle bin
|restart the computer|install the update|log me out|create a new folder|list all files in this directory|compress the archive|run the tests|check for viruses|back up my phone|connect to the printer|forget this network|share my screen
|pair the headphones|format the disk|eject the drive|switch to the other window|sort by name|go to line forty|find and replace|select all|scroll down|press enter|page up|double click the icon|refresh the page|bookmark this site|download the attachment
|forward this to legal|attach the contract|reply to all|unsubscribe me|block this caller|enable two factor login|uninstall that program|open a terminal|change my username|free up some disk space|show hidden files|mount the volume|kill the process
|ping the server|enter full screen|disable autocorrect|check the battery percentage|reboot|shut down|log in|backspace|stop|pause|resume|next|cancel|help|the committee approved the budget|the judge adjourned the hearing|the defendant pleaded not guilty
|both parties signed the contract|the witness was cross examined|a motion to dismiss was filed|the tenant shall give two months notice|subject to clause fourteen|the appeal was rejected|the will was read to the heirs|intellectual property rights
|the statute of limitations has expired|burden of proof|the notary stamped the deed|articles of association|the treaty entered into force|parliament passed the bill|the mayor resigned|voters registered at the town hall|the senate held a vote
|the union called a strike|the delegates met in geneva|the minister answered questions|a new census is being prepared|local government reform|the jury reached a verdict|small claims court|the lawyer charged by the hour|terms and conditions apply
|the licence was revoked|power of attorney|freedom of information request|the goalkeeper saved the penalty|they lost three nil away|the striker was offside|she ran the marathon in four hours|match point|the referee blew the whistle
|he broke the long jump record|our team finished in sixth place|the coach picked the substitutes|a hat trick in the first half|the relay team dropped the baton|the bowler took five wickets|he plays left back|she trains with weights on tuesdays
|third base|the peloton caught the breakaway|a slam dunk at the buzzer|doubles partner|the league table|the rowing club needs a cox|two push ups and a squat|the chess champion resigned|the wrestler pinned his opponent|they drew the first leg
|the umpire called it out|the transfer fee was not disclosed|who scored the winner|a round of golf|she swam the channel|he missed the cut by a stroke|the fencing hall is closed|the quarterback threw an interception|the enzyme breaks down starch
|cells divide by mitosis|the sample was measured three times|the hypothesis was not supported|an isosceles triangle|a prime number has two divisors|the mass of a proton|standard deviation|the theorem was proved by induction
|dna carries genetic information|the experiment had a control group|sound travels in waves|the derivative of a constant is nil|electrons orbit the nucleus|a peer reviewed journal|the bacteria were resistant to penicillin|newton's second law
|tectonic plates move slowly|random sample of households|the catalyst speeds up the reaction|margin of error|periodic table of the elements|the mean and the median differ|a double blind trial|sodium chloride|the pendulum swings|boolean algebra
|the fossil was found in a quarry|statistically significant|the vaccine needs two doses|a vector has length and direction|the larynx contains the vocal cords|molecular weight|quadratic equation|the microscope needs a new part
|the paper has eleven authors|the liver filters toxins|triangulation of the distance|the ratio of the circumference to the diameter|the survey had a low response rate|kinetic energy|peel the potatoes|a dozen eggs and a loaf of bread
|flour yeast and salt|two kilos of rice|knead the dough for eight minutes|stir in the yoghurt|toilet paper soap and batteries|a packet of spaghetti|dog food and a lead|nails screws and a hammer|chop the onions finely|slice the bread|drain the pasta
|fold in the egg whites gently|a pinch of nutmeg|serve with rice|one portion of chips|a cheese sandwich please|does it contain nuts|i'm allergic to shellfish|chicken noodle soup|a bag of lentils|half a pound of mince|the waiter brought the menu
|she runs a bakery|tinned sardines|dumplings|couscous with chickpeas|meatballs|porridge oats|a jar of mayonnaise|rolling pin and baking tray|leftovers in the fridge|the soup of the day|use a wooden spoon|grate the parmesan|vegetarian lasagne
|sandwich bags and foil|paper towels and a sponge|toothpaste shampoo dental floss|pasta and stock cubes|cat litter and a scratching post|two tickets to rotterdam|where do i collect my luggage|the train leaves from platform six
|the ferry takes two hours|a return to birmingham|window or aisle|the flight was overbooked|do we need a visa|single room with a shower|the hostel is full|my suitcase is missing|the museum is closed on mondays|we hired a car at the airport
|which terminal is it|the bus stops outside the post office|change trains at cologne|customs declaration|show your boarding pass|the guide speaks dutch|we missed the connection|a map of the underground|the hotel lobby has a lift|travel insurance
|exit at the second roundabout|the toll is four euros|keep left at the junction|the conductor checked our tickets|we took a taxi to the conference|the embassy issued a new passport|no vacancies|checkout is at reception|seat belt
|cabin crew prepare for landing|duty free allowance|the journey took three days|how do i get to the bus station|the dog buried a bone|cats sleep a lot|a herd of cattle crossed the road|the parrot repeats everything|elephants have long memories
|the horse needs new shoes|a beaver builds dams|the hen laid an egg|snails carry their shells|kangaroos carry their young in a pouch|the puppy chewed my slipper|goats can climb trees|the vet examined the rabbit|ants work together
|the badger digs a burrow|an otter holds its food|a litter of kittens|the donkey refused to move|bees communicate by dancing|hedgehog|giraffe|wombat|armadillo|the cow jumped the fence|mice got into the pantry|a shoal of herring
|the hippo weighs two tons|sloths move slowly|the tortoise is eighty years old|the sheepdog rounded up the flock|moles live underground|the ferret escaped|he is a bricklayer|she works as an accountant|the plumber fixed the tap|my father was a postman
|the electrician rewired the kitchen|the secretary took the minutes|an apprentice carpenter|the surgeon washed her hands|the librarian stamped the book|the driver delivered the parcels|the nurse checked his pulse|the tailor took my measurements
|the engineer drew up a plan|hiring a part time receptionist|send us your curriculum vitae|he was promoted to foreman|she handed in her notice|the trainee starts on wednesday|the teacher marked the exams|a retired civil servant
|the cashier counted the coins|civil engineer with six years experience|the janitor has the keys|chiropractor|the translator missed a comma|the farmer bought a tractor|the butcher and the baker|welders wanted|the actuary calculated the risk
|the interns share an office|human resources department|quarterly sales figures|the merger was announced|shareholders meet annually|we need three quotes for the roof repair|net profit rose by four percent|the warehouse is out of stock
|minutes of the last meeting|action items for the team|please find attached the report|as per my last email|the deadline is on friday|the invoice is overdue|a loan at a fixed rate|the audit found no errors|purchase order|customer service
|the supply chain was interrupted|market share|return on investment|the pension fund|let's circle back to that|the spreadsheet has three sheets|our competitors cut their prices|shipping and handling|value added tax|key performance indicators
|the landlord raised the rent|mortgage application|bank transfer|cash or card|the receipt is in the bag|the stock split two for one|margaret thompson|johann schneider|maria fernandez|david okafor|yuki tanaka|ahmed hassan|priya sharma|lars eriksson
|giovanni bianchini|fatima el amrani|michael johnson|olga petrova|nguyen van thanh|susan|gregory|kwame|beatrice|dimitri|henrietta|bartholomew|doctor patel|aunt edith|uncle bob|the robinsons|my friend carlos|professor lindqvist|ask kevin|dortmund|leeds
|omaha|wolverhampton|gdansk|rotterdam|ljubljana|toulouse|eindhoven|kansas city|adelaide|bratislava|montevideo|kuala lumpur|swindon|bern|pittsburgh|bielefeld|coventry|utrecht|antwerp|indiana|the county of kent|ohio|siemens|microsoft|deutsche bahn
|toyota|ikea|general electric|procter and gamble|volkswagen|ericsson|lufthansa|walmart|tata consultancy services|barclays bank|hewlett packard|johnson and sons limited|fedex|a stitch in time saves nine|practice makes perfect|better late than never
|too many cooks spoil the broth|two heads are better than one|actions speak louder than words|a penny saved is a penny earned|don't count your chickens before they hatch|you can't teach an old dog new tricks|don't put all your eggs in one basket
|where there's a will there's a way|honesty is the best policy|look before you leap|the pen is mightier than the sword|when in rome do as the romans do|beggars can't be choosers|a watched pot never boils|rome wasn't built in a day
|birds of a feather flock together|many hands make less work|measure twice and cut once|haste makes waste|you can lead a horse to water|if it ain't broke don't fix it|the customer is always right|all roads lead to rome
|necessity is the mother of invention|no news is good news|a rolling stone gathers no moss|first come first served|the apple doesn't fall far from the tree|easy come easy go|barking up the wrong tree|let sleeping dogs lie
|the proof of the pudding is in the eating|kill two birds with one stone|the ball is in your court|once bitten twice shy|time is money|it takes two to tango|don't look a gift horse in the mouth|the squeaky wheel gets the grease|you reap what you sow
|every dog has its day|wo ist der bahnhof|ich habe zwei geschwister|guten appetit|was kostet das|der hund schlaeft|ein ticket nach hamburg bitte|wie viel uhr ist es|ich verstehe kein wort|die rechnung bitte|er arbeitet als lehrer|mein vater ist arzt
|wir haben kein brot mehr|entschuldigung|hast du meinen schluessel gesehen|comment allez vous|je ne sais pas|ou est la gare|il travaille dans une banque|combien ca coute|je voudrais deux billets|mon frere habite a lyon|s'il vous plait|le chat dort
|qu'est ce que c'est|nous avons trois enfants|donde esta la biblioteca|cuanto cuesta|tengo dos hermanas|no entiendo la pregunta|mi perro se llama paco|muchas gracias|el tren sale de la estacion|quiero un vaso de agua|dos entradas por favor|dove abiti
|quanto costa il biglietto|mi chiamo francesca|il conto per favore|ho fame|non parlo italiano|onde fica o banheiro|meu nome e paulo|muito obrigado|hoe gaat het met je|ik woon in utrecht|waar is mijn fiets|jag heter anna|tack sa mycket|hvor bor du
|minun nimeni on pekka|dziekuje bardzo|gdzie jest dworzec|jak se mas|kak dela|spasibo|arigato gozaimasu|eki wa doko desu ka|ni hao ma|merhaba nasilsin|tesekkur ederim|habari gani|asante sana|terima kasih|selamat makan|quod erat demonstrandum|et cetera
|habeas corpus|cogito ergo sum|lorem ipsum dolor sit amet|ad hoc|pro bono|mutatis mutandis|blorf zindle wexit|asdfghjkl|qwertyuiop|hjkl hjkl|zxcvbnm|asdf asdf asdf|sdkfjh wieur|kjhgf|ghghgh tytyty|wqpoei|jkljkl|aaaaaaa|xxxxx|dsafsdf|uiop|poiuytrewq
|mnbvcxz|qazwsx edc|skdjfhskdjfh|wertz uiop|ttttttt yyy|gribble snarf|plonkwit|vortigant mibbelow|frabbish the wuggle|squandrel|drompf|tibberwick noosle|quixal bem|yupplegorn|marvex tondrill|snorkelfib|wumbaroo|zant perrikule|fizznort|thrumbold
|krindle my vopp|hesperquat|noodlewump gax|pindlewax oru|vleeb|mopsiquat|tarn weddle horf|cromulate the dask|urgle|splonx|bawdlerump|ronchik|dweeble|oftenwick|kestrivale|zibbo|plim plam plom|gorrabund|snuzzle foop|trelk|vadderish monkulo
|null pointer exception|segmentation fault|git commit|def main return zero|for i in range|print hello world|import numpy|sudo apt install|int argc char argv|select star from users|if else endif|while true break|npm run build|void function
|const let var|array index out of bounds|stack overflow|div class container|chmod plus x|grep minus r|try catch finally|public static void main|json parse error|http four oh four not found|localhost port eighty eighty|lambda x|utf eight
|regex match group|struct node next|kwargs|stdin stdout stderr|pip install requests|docker compose up|merge conflict in readme|rebase onto main|todo fixme|git push origin|undefined is not a function|async await|byte offset|hash map|linked list
|semicolon missing|iterator|mutex deadlock|tcp handshake|dns lookup failed|kernel panic|unit test coverage|pull request|base class|boolean flag|recursive call|garbage collector|sizeof|len of list|camshaft|flange|torque wrench|ball bearing
|hydraulic pump|gearbox|ethernet cable|usb hub|circuit breaker|piston ring|conveyor belt|transistor|multiplexer|voltage regulator|crankshaft sensor|cylinder head gasket|solenoid valve|stepper motor|baud rate|carburettor|centrifuge
|differential equation|load bearing wall|rebar and concrete mix|worm drive|pneumatic drill|modem|firmware|oscilloscope probe|alternator|scaffolding|lathe operator|serial number|part number|router|subnet|parity bit|checksum|eigenvalue|logarithm|axle
|sprocket|ratchet|dowel|hinge|plywood|the meeting starts at ten|he reads the newspaper on the train|she has two sons and a daughter|they live on the third floor|the door was locked|my phone number has changed|the book has three hundred pages
|he forgot his wallet|the chair has four legs|our street has a new name|the baby weighs seven pounds|i bought a new pair of shoes|she learns the violin|he wears size ten|the school has twelve classrooms|the bridge is two hundred metres long
|we sold the car last month|the clock needs a new battery|he can type very fast|they asked for directions|the queue was long|she opened an account|my aunt collects stamps|he wrote down the address|the parcel arrived on tuesday
|the neighbours have a trampoline|nobody answered the telephone|she studied law in edinburgh|the shop sells second hand furniture|he repairs bicycles|they are learning to dance the waltz|the choir rehearses on thursdays
|the letter was addressed to my mother|she teaches mathematics|he counted to a hundred|the village has one shop|the meeting was postponed|a committee of seven members|they built a fence round the garden|the twins are six years old
|he was born in eighteen ninety|the author has written nine novels|the plural of mouse is mice|a comma before the conjunction|the verb comes second|the alphabet has twenty six letters|the chapter on grammar|adjectives and adverbs
|she pronounced it wrong|noun phrase|the encyclopedia has twelve volumes|the council of trent|the history of the potato|the magna carta|the treaty of utrecht|the population doubled in a century|the suez canal|the library of alexandria
|remove the hum from the recording|an acid reacts with a base""".replace("\n", " ").split("|")
CODE = ["for (int i = 0; i < n; ++i)", "x = {n};", "def {w}(self): return {n}", "SELECT * FROM {w} WHERE id = {n}", "#include <{w}.h>", "git push origin {w}", "http://www.{w}.com/{n}",
        "{w}@{w}.org", "sudo apt install {w}", "<div class=\"{w}\">", "{w}.{w}({n})", "if ({w} == {n}) return;", "0x{n}", "C:\\{w}\\{w}.txt", "{n} + {n} = {n}", "{n}", "{n}.{n}", "{n}/{n}/{n}",
        "+{n} {n} {n}", "${n}.99", "{w}_{w}", "import {w}", "while True: pass", "{{\"{w}\": {n}}}", "printf(\"{w}\\n\");", "const {w} = () => {n};", "ls -la /{w}/{w}", "{n}:{n}"]
EMPTY = ["", "make it", "please", "very", "a bit", "more", "less", "the picture", "can you", "make the image", "a look", "the", "much more", "a touch of", "add", "remove", "increase",
         "give it a", "and", "it should be", "turn it", "style", "the video please", "slightly", "some", "in the", "with", "not", "without", "look", "mood", "effect", "a filter", "i want", "i want it",
         "make the picture look", "grade it", "change the colours", "do something", "fix it", "improve it", "edges", "the corners", "top", "bottom left", "the sky", "left side", "centre", "on the right",
         "the background", "subject", "faces", "skin", "grass", "the trees", "water", "shadows", "highlights", "midtones", "make the edges", "make the sky", "at the top", "trees", "sky", "the sea"]
FORMS = ["the {a} {t} {v} the {t}", "a {t} {v}", "my {t} {v} a {a} {t}", "{t}", "{t} {t}", "the {t} and the {t}", "{t} {v} {t}", "where is the {t}", "{a} {t}", "i saw a {a} {t}", "the {t} is {w}",
         "a {a} {a} {t}", "{w}", "{w}", "{w} {w}", "{w} {t}", "the {w} {t}", "a {w} of {w}", "{w} {w} {w}", "{w} {w} {w} {w}", "{w} {v} {w}", "make a {t}", "make me a {t}", "add a {t}", "remove the {t}", "more {t}",
         "a {t} with a {t}", "give me the {t}", "give it a {t}", "the {a} {t} {v} over the {a} {t}", "two {t}s", "make it {w}", "{w} look", "more {w}", "a {w} {t}", "put a {t} in the {t}", "the {t} of {w}", "no {t}",
         "turn it into a {t}", "like a {t}", "less {w}", "{w} the {t}", "i want a {t}", "{w} the picture", "the {w} should be {w}", "without {w}", "very {w}", "make the {t} {w}", "a {w} {w}"]


class OffTopic:
    def __init__(self, rng: random.Random, dictionary: list[str], asked_for: set[str], common: dict[str, list[str]], stuff: list[str]):
        """`asked_for` are names that things may not have: those of looks and colours; `common` and `stuff`: see Contexts."""
        self.rng, self.dictionary = rng, dictionary
        self.things = [thing for thing in THINGS if thing not in asked_for | {"lamp", "light"}]
        self.contexts = Contexts(rng, common, self.things, [word for word in PLAIN if word not in asked_for], stuff)

    def thing(self) -> str:
        """ "my dog" """
        return f"{self.rng.choice(('my', 'the', 'a', 'this', 'our'))} {self.rng.choice(self.things)}"

    def word(self) -> str:
        return self.rng.choice(self.dictionary)

    def letters(self) -> str:
        r = self.rng
        alphabet = r.choice((r.choice("abcdefghijklmnopqrstuvwxyz.-"), "abcdefghijklmnopqrstuvwxyz", "bcdfghjklmnpqrstvwxz", "aeiourstln", "abcdefghijklmnopqrstuvwxyz0123456789", "asdfghjkl", "!?#$%&*()-_=+;:,./<>@", "äöüßéèñçøåж漢字ひらअب"))
        return " ".join("".join(r.choice(alphabet) for _ in range(r.randint(1, 12))) for _ in range(r.randint(1, 4)))

    def sentence(self) -> tuple[str, list]:
        r = self.rng
        kind = r.random()
        if kind < 0.34:
            return self.contexts.of_nothing(), []
        if kind < 0.5:
            return " ".join(self.word() for _ in range(r.choice((1, 1, 1, 2, 3, 4, 6, 9)))), []
        if kind < 0.72:
            out = " ".join(self.filled(part) for part in r.choice(FORMS).split(" "))
            return out, []
        if kind < 0.82:
            return self.letters(), []
        if kind < 0.88:
            return " ".join(r.choice(CODE).format(w=self.word(), n=r.randint(0, 9999)) for _ in range(r.choice((1, 1, 2)))), []
        return (r.choice(EMPTY), []) if kind < 0.92 else (r.choice(ASKED).strip(), [])

    def filled(self, part: str) -> str:
        lists = {"{a}": PLAIN, "{t}": self.things, "{t}s": self.things, "{v}": VERBS}
        return self.rng.choice(lists[part]) if part in lists else part.replace("{w}", self.word())


def related_words(wordnet: Path, known: set[str]) -> set[str]:
    """Synonyms of known words, and words of what pictures may be like: they are not learned, but not as words that mean nothing either."""
    related = set()
    for path in sorted(wordnet.glob("data.*")):
        for line in path.read_text().splitlines():
            if line.startswith("  "):  # the licence
                continue
            fields = line.split(" ")
            synonyms = {word.lower().split("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]}
            if fields[1] in MEANINGFUL or synonyms & known:
                related |= synonyms
    return related


def other_words(path: str, wordnet: Path, known: set[str]) -> list[str]:
    """Words of a dictionary that are not known, nor made of words that are ("warmly"), nor near them in meaning."""
    stems = tuple(word for word in known if len(word) > 3)
    found = {line.strip().lower() for line in open(path, encoding="utf-8")} - known - related_words(wordnet, known)
    return sorted(w for w in found if w.isalpha() and len(w) > 2 and not w.startswith(stems))
